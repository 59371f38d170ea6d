import { useState } from "preact/hooks";
import { address, remove } from "../api/client";
import { Problem } from "../api/problem";
import type { Sandbox } from "../api/records";
import { shortID, zone } from "../format";
import { Failure, Loading, TwoSteps } from "../parts/feedback";
import { Time } from "../parts/label";
import { useLoaded } from "../parts/loaded";
import { me } from "../session";
import type { Session } from "./play_session";

// The sessions in addition to the one that the playground shows.

const maxListed = 100;

// Sessions lists the live sessions of the person, also those of other tabs, of chats and of programs with the person's key.
export function Sessions({ session }: { session: Session }) {
  const state = session.state.value;
  const { answer, problem, reload } = useLoaded<{ sandboxes: Sandbox[]; next?: string }>(
    address("/sandboxes", { user_id: me.value?.user_id, status: "active", limit: maxListed }),
    [session.id.value, state, session.changes.value],
  );
  const [failure, setFailure] = useState<Problem>();
  if (problem) return <Failure problem={problem} retry={reload} />;
  if (!answer) return <Loading what="the sessions" />;
  const end = async (id: string) => {
    setFailure(undefined);
    if (id === session.id.value) return session.end();
    try {
      await remove(`/sandbox/${encodeURIComponent(id)}`);
    } catch (thrown) {
      const failed = Problem.from(thrown);
      if (failed.status !== 410) setFailure(failed); // it has ended meanwhile
    }
    reload();
  };
  return (
    <>
      <p class="muted body">
        Your sessions that have not ended, newest first. Each keeps its variables and files until it ends.
      </p>
      {failure && <Failure problem={failure} />}
      {answer.sandboxes.length === 0 && <p class="muted body">You have none. A session begins when you run code.</p>}
      <ul class="entries" aria-label="Your live sessions">
        {answer.sandboxes.map(({ sandbox_id: id, created_at: created, last_used_at: used }) => {
          const isCurrent = id === session.id.value;
          return (
            <li key={id}>
              <div class="entry">
                {isCurrent ? (
                  <strong class="mono">{shortID(id)}</strong>
                ) : (
                  <a
                    class="mono"
                    href={address("/ui/play", { sandbox: id, panel: "sessions" })}
                    title={`Open session ${id}`}
                  >
                    {shortID(id)}
                  </a>
                )}
                {isCurrent && " is open here"}
                <div class="muted">
                  begun <Time at={created} />
                  {used && (
                    <>
                      , used <Time at={used} />
                    </>
                  )}
                  , {zone()}
                </div>
              </div>
              <TwoSteps label="End" confirm="End it, with its variables" danger action={() => end(id)} />
            </li>
          );
        })}
      </ul>
      {answer.next && (
        <p class="body">
          <a href="/ui/sandboxes">All sandboxes</a>
        </p>
      )}
    </>
  );
}

// Former says that the session which the person has just left is still there.
export function Former({ session, dismiss }: { session: Session; dismiss: () => void }) {
  const state = session.state.value;
  const minutes = Math.round((session.limits.value?.idle_timeout ?? 0) / 60);
  if (state !== "live") return null;
  return (
    <div class="notice" role="status">
      <strong>Session {shortID(session.id.value)} is still there, with its variables.</strong>
      {minutes > 0 && <p>It ends after {minutes} min without use.</p>}
      {session.problem.value && <Failure problem={session.problem.value} />}
      <span class="run-actions">
        <a class="button" href={address("/ui/play", { sandbox: session.id.value })} onClick={dismiss}>
          Go back to it
        </a>
        <TwoSteps label="End it" confirm="End it, with its variables" danger action={() => session.end()} />
        <button onClick={dismiss}>Keep it</button>
      </span>
    </div>
  );
}
