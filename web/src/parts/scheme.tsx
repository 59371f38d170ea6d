import { signal } from "@preact/signals";

const names = ["system", "light", "dark"] as const;
type Scheme = (typeof names)[number];

const chosen = signal<Scheme>((document.documentElement.dataset["theme"] as Scheme | undefined) ?? "system");

function choose(scheme: Scheme): void {
  chosen.value = scheme;
  if (scheme === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = scheme;
  try {
    if (scheme === "system") localStorage.removeItem("glasshouse-theme");
    else localStorage.setItem("glasshouse-theme", scheme);
  } catch {
    // The browser keeps no data for this site: the choice holds until the page is left.
  }
}

// SchemeSwitch chooses between dark, light and the system's setting.
export function SchemeSwitch() {
  return (
    <label class="scheme">
      <span>Theme</span>
      <select value={chosen.value} onChange={(event) => choose(event.currentTarget.value as Scheme)}>
        {names.map((name) => (
          <option key={name} value={name}>
            {name[0]!.toUpperCase() + name.slice(1)}
          </option>
        ))}
      </select>
    </label>
  );
}
