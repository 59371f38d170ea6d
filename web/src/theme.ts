// This script is loaded before the page is drawn, so that a chosen colour scheme never flashes in the other one.
{
  let chosen: string | null = null;
  try {
    chosen = localStorage.getItem("glasshouse-theme");
  } catch {
    // The browser keeps no data for this site: the system's scheme is used.
  }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset["theme"] = chosen;
}
