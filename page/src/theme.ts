// Light, dark, or as the system has it.

export type Theme = "auto" | "light" | "dark";

const system = matchMedia("(prefers-color-scheme: dark)");

/** Where a browser keeps nothing for a page, the choice lasts as long as the page. */
function stored(): Storage | undefined {
  try {
    return localStorage;
  } catch {
    return undefined;
  }
}

let chosen = (stored()?.getItem("attn-theme") ?? "auto") as Theme;
document.documentElement.dataset.theme = chosen;

export const theme = (): Theme => chosen;

export function choose(next: Theme): void {
  chosen = next;
  document.documentElement.dataset.theme = next;
  stored()?.setItem("attn-theme", next);
}

/** What is drawn on a canvas is drawn anew where this changes. */
export const isDark = (): boolean => chosen === "dark" || (chosen === "auto" && system.matches);

export const onSystemChange = (act: () => void): void => system.addEventListener("change", act);
