import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Problem } from "./api/problem";
import { hasKeys } from "./parts/has_keys";
import { visible } from "./parts/hidden_characters";
import { openPalette, usePalette } from "./parts/palette_keys";
import { SchemeSwitch } from "./parts/scheme";
import { here, path } from "./router";
import { isAdmin, mayDebug, me, signOut } from "./session";
import { waitingWrites, watchWaiting } from "./waiting";

export interface Entry {
  path: string;
  name: string;
  admin?: boolean;
  debug?: boolean; // for keys that may debug
  icon: string; // the path of a picture of 16 x 16
}

export const entries: Entry[] = [
  { path: "/", name: "Home", icon: "M2 8l6-5 6 5M4 7v6h8V7" },
  { path: "/executions", name: "Executions", icon: "M3 4h10M3 8h10M3 12h6" },
  { path: "/play", name: "Playground", icon: "M2 3h12v10H2zM5 6l2 2-2 2M8 10h3" },
  { path: "/chat", name: "Chat", icon: "M2 3h12v8H7l-3 3v-3H2zM5 6h6M5 8h4" },
  {
    path: "/debug",
    name: "Debugger",
    debug: true,
    icon: "M5 6a3 3 0 016 0v4a3 3 0 01-6 0zM2 8h3M11 8h3M3 3l2 2M13 3l-2 2M3 13l2-2M13 13l-2-2",
  },
  {
    path: "/statements",
    name: "Statements",
    icon: "M3 4c0-2 10-2 10 0v8c0 2-10 2-10 0zM3 4c0 2 10 2 10 0M3 8c0 2 10 2 10 0",
  },
  { path: "/writes", name: "Pending writes", admin: true, icon: "M3 13l1-3 7-7 2 2-7 7zM9 13h4" },
  { path: "/sandboxes", name: "Sandboxes", icon: "M8 2l5 3v6l-5 3-5-3V5zM3 5l5 3 5-3M8 8v6" },
  {
    path: "/connections",
    name: "Connections",
    icon: "M8 2a6 6 0 100 12A6 6 0 008 2zM2 8h12M8 2c-4 4-4 8 0 12 4-4 4-8 0-12",
  },
  { path: "/artifacts", name: "Artifacts", icon: "M4 2h5l3 3v9H4zM9 2v3h3" },
  { path: "/keys", name: "Keys", icon: "M8 10a3 3 0 10-3 3 3 3 0 003-3zM7 8l6-6M11 4l2 2" },
  { path: "/system", name: "System", admin: true, icon: "M2 8h3l2-5 3 10 2-5h2" },
  { path: "/audit", name: "Audit", admin: true, icon: "M8 2l5 2v4c0 3-2 5-5 6-3-1-5-3-5-6V4zM6 8l2 2 3-4" },
];

export function Icon({ of }: { of: string }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      <path
        d={of}
        fill="none"
        stroke="currentColor"
        stroke-width="1.4"
        stroke-linejoin="round"
        stroke-linecap="round"
      />
    </svg>
  );
}

export function Logo() {
  return (
    <svg viewBox="0 0 32 32" width="22" height="22" aria-hidden="true">
      <rect width="32" height="32" rx="7" class="logo-ground" />
      <path d="M6 25V14l10-8 10 8v11zM6 14h20M16 6v19M11 14v11M21 14v11" class="logo-lines" />
    </svg>
  );
}

function isCurrent(entry: Entry): boolean {
  if (entry.path === "/") return path.value === "/";
  return path.value === entry.path || path.value.startsWith(entry.path + "/");
}

// Shell draws the parts that all pages have: the navigation, and the user who is signed in.
export function Shell({ children }: { children: ComponentChildren }) {
  const [open, setOpen] = useState(false);
  const [failure, setFailure] = useState("");
  useEffect(() => setOpen(false), [here.value]);
  useEffect(watchWaiting, []);
  const palette = usePalette();
  const leave = async () => {
    try {
      await signOut();
    } catch (thrown) {
      setFailure(Problem.from(thrown).message);
    }
  };
  return (
    <div class="shell">
      {/* biome-ignore lint/a11y/useValidAnchor: a link to a part of the page, whose focus is moved, too */}
      <a
        class="skip"
        href="#content"
        onClick={(event) => {
          event.preventDefault();
          document.querySelector<HTMLElement>("h1")?.focus();
        }}
      >
        Skip to the content
      </a>
      <header class={open ? "side open" : "side"}>
        <div class="brand">
          <a href="/ui/">
            <Logo /> Glasshouse
          </a>
          <button class="menu" aria-expanded={open} aria-controls="navigation" onClick={() => setOpen(!open)}>
            Menu
          </button>
        </div>
        <button class="find-all" onClick={() => openPalette("search")}>
          Search {hasKeys && <kbd>Ctrl K</kbd>}
        </button>
        <nav id="navigation" aria-label="Pages">
          <ul>
            {entries
              .filter((entry) => (!entry.admin || isAdmin.value) && (!entry.debug || mayDebug.value))
              .map((entry) => (
                <li key={entry.path}>
                  <a href={"/ui" + entry.path} aria-current={isCurrent(entry) ? "page" : undefined}>
                    <Icon of={entry.icon} /> {entry.name}
                    {entry.path === "/writes" && waitingWrites.value > 0 && (
                      <span class="badge" title={`${waitingWrites.value} wait for a decision`}>
                        {waitingWrites.value}
                        <span class="visually-hidden"> wait for a decision</span>
                      </span>
                    )}
                  </a>
                </li>
              ))}
            <li>
              <a href="/docs">
                <Icon of="M5 4L2 8l3 4M11 4l3 4-3 4M9 3L7 13" /> API
              </a>
            </li>
          </ul>
        </nav>
        <div class="person">
          <div class="who">
            <strong title={me.value?.user_id}>{me.value?.user_id}</strong>
            <span class="muted">
              {me.value?.role}, key “{me.value?.name}”
            </span>
          </div>
          <SchemeSwitch />
          <button onClick={leave}>Sign out</button>
          {failure && <p role="alert">{failure}</p>}
        </div>
      </header>
      <main id="content">{children}</main>
      {palette}
    </div>
  );
}

// Page is the frame of a page's content. The heading takes the focus when the page is opened.
// intro says in a sentence what the page is for.
export function Page(props: {
  title: string;
  heading?: ComponentChildren;
  actions?: ComponentChildren;
  intro?: ComponentChildren;
  fill?: boolean;
  children: ComponentChildren;
}) {
  useEffect(() => {
    document.title = `${visible(props.title)} · Glasshouse`;
  }, [props.title]);
  return (
    <div class={props.fill ? "page fill" : "page"}>
      <div class="head">
        <h1 tabIndex={-1}>{props.heading ?? props.title}</h1>
        {props.actions && <div class="actions">{props.actions}</div>}
      </div>
      {props.intro && <p class="intro muted">{props.intro}</p>}
      {props.children}
    </div>
  );
}
