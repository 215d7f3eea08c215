declare module "attn-engine" {
  const create: (given: { wasmBinary: Uint8Array }) => Promise<{ ccall(name: string, result: string, types: string[], values: unknown[]): unknown }>;
  export default create;
}
declare module "attn-engine-wasm" {
  const binary: Uint8Array;
  export default binary;
}
declare module "*.css";
