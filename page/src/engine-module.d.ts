declare module "attn-engine" {
  const create: (given: { wasmBinary: Uint8Array }) => Promise<{
    ccall(name: string, result: string, types: string[], values: unknown[]): unknown;
    HEAPU8: Uint8Array;
    HEAPF32: Float32Array;
  }>;
  export default create;
}
declare module "attn-engine-wasm" {
  const binary: Uint8Array;
  export default binary;
}
declare module "*.css";
