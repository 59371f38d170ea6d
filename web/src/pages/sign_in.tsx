import { useEffect, useRef, useState } from "preact/hooks";
import { address, get } from "../api/client";
import { Problem } from "../api/problem";
import type { SignInMethods } from "../api/records";
import { SchemeSwitch } from "../parts/scheme";
import { here, parameter, setParameters } from "../router";
import { reason, signIn } from "../session";
import { Logo } from "../shell";

// failures has a text for each reason with which the service returns from a sign-in with a link or the identity provider.
const failures: Record<string, string> = {
  used: "This link was used or has expired. Run `glasshouse login-link` on the machine of the service to get another link, or enter a key.",
  expired: "The sign-in took longer than ten minutes, or began in another browser. Try again.",
  refused:
    "You are signed in at the identity provider, but have no role here, or the sign-in was refused. Ask the operator for a role.",
  unreachable: "The identity provider cannot be reached. Try again later, or use a key.",
  failed: "The answer of the identity provider is not valid. Try again; the log of the service has the reason.",
};

// SignIn asks for a key, or offers the identity provider. It is shown at every address, so that one is on the wanted page
// afterwards.
export function SignIn() {
  const [key, setKey] = useState("");
  const [problem, setProblem] = useState("");
  const [running, setRunning] = useState(false);
  const [methods, setMethods] = useState<SignInMethods>({});
  const [failed] = useState(failures[parameter("sign_in")]);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    document.title = "Sign in · Glasshouse";
    field.current?.focus();
    setParameters({ sign_in: "" }, true); // a reload is another attempt
    get<SignInMethods>("/login/methods").then(setMethods, () => {}); // a key can be tried anyway
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
        <h1>
          <Logo /> Glasshouse
        </h1>
        <p class="muted">Every run of an agent's code, recorded: what it did, what it read, why it failed.</p>
        {reason.value && (
          <div class="notice warn" role="status">
            <strong>You were signed out.</strong>
            <p>{reason.value}</p>
          </div>
        )}
        {failed && (
          <div class="notice warn" role="status">
            <strong>You are not signed in.</strong>
            <p>{failed}</p>
          </div>
        )}
        {methods.provider && (
          <a class="button primary" href={address(methods.provider.path, { return: here.value })}>
            Sign in with {methods.provider.name}
          </a>
        )}
        <label for="key">API key</label>
        <input
          id="key"
          ref={field}
          type="password"
          autocomplete="current-password"
          spellcheck={false}
          value={key}
          aria-invalid={problem !== ""}
          aria-describedby="key-help"
          onInput={(event) => setKey(event.currentTarget.value)}
        />
        {problem && (
          <p class="field-error" role="alert">
            {problem}
          </p>
        )}
        <button class={methods.provider ? undefined : "primary"} disabled={running}>
          {running ? "Signing in…" : methods.provider ? "Sign in with a key" : "Sign in"}
        </button>
        <p id="key-help" class="muted">
          <code>glasshouse login-link</code> prints a link that signs an admin in without a key. The admin's key is in
          the file <code>admin.key</code> of the data folder; <code>glasshouse keys create</code> makes others.
        </p>
      </form>
      <SchemeSwitch />
    </main>
  );
}
