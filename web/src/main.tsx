import "../styles/main.css";
import { render } from "preact";
import { waiting } from "./api/client";
import { Routes } from "./pages/routes";
import { SignIn } from "./pages/sign_in";
import { Failure, Loading } from "./parts/feedback";
import { showHiddenCharacters } from "./parts/hidden_characters";
import { failure, me, start, state } from "./session";
import { Shell } from "./shell";

function App() {
  switch (state.value) {
    case "loading":
      return (
        <main class="sign-in">
          <Loading what="Glasshouse" />
        </main>
      );
    case "unreachable":
      return <main class="sign-in">{failure.value && <Failure problem={failure.value} retry={start} />}</main>;
    case "signed-out":
      return <SignIn />;
    case "signed-in":
      return (
        <Shell key={me.value?.user_id}>
          <Routes />
        </Shell>
      ); // another user sees no page of the former one
  }
}

// Waiting says why nothing arrives for a moment. What is on the page stays.
function Waiting() {
  const limit = waiting.value;
  if (!limit) return null;
  return (
    <p class="notice warn waiting" role="status">
      <strong>{limit.title}</strong> {limit.detail}. The page tries again by itself.
    </p>
  );
}

showHiddenCharacters();
render(
  <>
    <App />
    <Waiting />
  </>,
  document.getElementById("app")!,
);
void start();
