// Where arrow keys lead in a table.
export const STEPS: Record<string, [row: number, column: number]> = {
  ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
};
