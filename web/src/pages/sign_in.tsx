import { useEffect, useRef, useState } from "preact/hooks";
import { Problem } from "../api/problem";
import { SchemeSwitch } from "../parts/scheme";
import { reason, signIn } from "../session";
import { Logo } from "../shell";

// SignIn asks for a key. It is shown at every address, so that one is on the wanted page afterwards.
export function SignIn() {
  const [key, setKey] = useState("");
  const [problem, setProblem] = useState("");
  const [running, setRunning] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    document.title = "Sign in · Glasshouse";
    field.current?.focus();
  }, []);
  const submit = async (event: Event) => {
    event.preventDefault();
    if (!key.trim()) {
      setProblem("Enter a key. The first one is in the file admin.key of the data folder.");
      field.current?.focus();
      return;
    }
    setRunning(true);
    setProblem("");
    try {
      await signIn(key.trim());
    } catch (thrown) {
      const { title, detail } = Problem.from(thrown);
      setProblem(detail || title);
      setRunning(false);
      field.current?.select();
    }
  };
  return (
    <main class="sign-in">
      <form onSubmit={submit} noValidate>
        <h1><Logo /> Glasshouse</h1>
        <p class="muted">Every run of an agent's code, recorded: what it did, what it read, why it failed.</p>
        {reason.value && <div class="notice warn" role="status"><strong>You were signed out.</strong><p>{reason.value}</p></div>}
        <label for="key">API key</label>
        <input id="key" ref={field} type="password" autocomplete="current-password" spellcheck={false} value={key}
          aria-invalid={problem !== ""} aria-describedby="key-help"
          onInput={(event) => setKey(event.currentTarget.value)} />
        {problem && <p class="field-error" role="alert">{problem}</p>}
        <p id="key-help" class="muted">
          The admin's key is in the file <code>admin.key</code> of the data folder;{" "}
          <code>glasshouse keys create</code> makes others. It stays in a cookie that scripts cannot read.
        </p>
        <button class="primary" disabled={running}>{running ? "Signing in…" : "Sign in"}</button>
      </form>
      <SchemeSwitch />
    </main>
  );
}
