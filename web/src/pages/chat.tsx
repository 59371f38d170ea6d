import { useEffect, useRef, useState } from "preact/hooks";
import type { Chat as Settings, Conversation } from "../api/chat";
import { get, post, remove } from "../api/client";
import { isAborted, Problem } from "../api/problem";
import { dateTime, zone } from "../format";
import { Copy, Empty, Failure, Loading, TwoSteps } from "../parts/feedback";
import { More, useList, type List } from "../parts/list";
import { navigate } from "../router";
import { isAdmin, me } from "../session";
import { Page } from "../shell";
import { Input, upload, type SessionFile } from "./chat_input";
import { Messages } from "./chat_messages";
import { conversationPath, useConversation } from "./chat_state";

const untitled = "New conversation";

const command = `bin/glasshouse serve \\
  --model-url http://127.0.0.1:11434/v1 \\
  --model-name qwen3:8b`;

function useSettings(): { settings: Settings | undefined; problem: Problem | undefined } {
  const [settings, setSettings] = useState<Settings>();
  const [problem, setProblem] = useState<Problem>();
  useEffect(() => {
    const request = new AbortController();
    get<Settings>("/chat", {}, request.signal).then(setSettings, (thrown) => {
      if (!isAborted(thrown)) setProblem(Problem.from(thrown));
    });
    return () => request.abort();
  }, []);
  return { settings, problem };
}

// useFiles returns the uploads of a session; of one that has ended there are none.
function useFiles(sandbox: string | undefined, version: number): SessionFile[] {
  const [files, setFiles] = useState<SessionFile[]>([]);
  useEffect(() => {
    setFiles([]);
    if (!sandbox) return;
    const request = new AbortController();
    get<{ files: SessionFile[] | null }>(`/sandbox/${encodeURIComponent(sandbox)}/files`, {}, request.signal)
      .then((list) => setFiles(list.files ?? []), () => {});
    return () => request.abort();
  }, [sandbox, version]);
  return files;
}

function Setup() {
  return (
    <Empty title="No language model is configured.">
      A person chats here with a language model, which runs Python in a session and queries the database. The operator starts
      the service with the address of any OpenAI-compatible endpoint, for example:
    </Empty>
  );
}

function Conversations({ list, current }: { list: List<Conversation>; current: string }) {
  const [open, setOpen] = useState(false);
  useEffect(() => setOpen(false), [current]);
  return (
    <nav class={open ? "conversations open" : "conversations"} aria-label="Conversations">
      <div class="top">
        <a class="button" href="/ui/chat">New chat</a>
        <button class="toggle" aria-expanded={open} aria-controls="conversations" onClick={() => setOpen(!open)}>Conversations</button>
      </div>
      {list.rows.length === 0 && (list.problem
        ? <Failure problem={list.problem} retry={list.reload} />
        : list.isLoading ? <Loading what="conversations" /> : <p class="muted">Your conversations appear here.</p>)}
      <ul id="conversations">
        {list.rows.map((c) => (
          <li key={c.conversation_id}>
            <a href={`/ui/chat/${encodeURIComponent(c.conversation_id)}`} aria-current={c.conversation_id === current ? "page" : undefined}>
              <span class="title">{c.title || untitled}</span>
              <span class="muted">{c.user_id === me.value?.user_id ? "" : `${c.user_id}, `}{dateTime(c.updated_at)} {zone()}</span>
            </a>
          </li>
        ))}
      </ul>
      {list.rows.length > 0 && <More list={list} what="conversations" />}
    </nav>
  );
}

// Chat is the page of the conversations: a new one without an id.
export function Chat({ id }: { id: string }) {
  const { settings, problem: settingsProblem } = useSettings();
  const state = useConversation(id);
  const { view, live, problem } = state;
  const list = useList<Conversation>("/chat/conversations", "conversations", { user_id: me.value?.user_id });
  const [version, setVersion] = useState(0);
  const [failed, setFailed] = useState<Problem>();
  const files = useFiles(view?.sandbox_id, version);
  const title = view?.title;
  useEffect(() => {
    if (title && !list.rows.some((c) => c.conversation_id === id && c.title === title)) list.reload();
  }, [id, title]);

  const begun = useRef(""); // the conversation that this page has just begun
  const begin = async () => (begun.current = (await post<Conversation>("/chat/conversations")).conversation_id);
  const open = (conversation: string) => navigate(`/ui/chat/${encodeURIComponent(conversation)}`, true);
  const send = async (text: string) => {
    if (id) return state.send(text);
    const made = await begin();
    await post(`${conversationPath(made)}/messages`, { text });
    open(made);
  };
  const take = async (chosen: File[]) => {
    const conversation = id || (await begin());
    const { sandbox_id: sandbox } = await post<{ sandbox_id: string }>(`${conversationPath(conversation)}/session`);
    for (const file of chosen) await upload(sandbox, file);
    setVersion(version + 1);
    if (id) state.reload();
    else open(conversation);
  };
  const erase = async () => {
    setFailed(undefined);
    try {
      await remove(conversationPath(id));
      list.reload();
      navigate("/ui/chat", true);
    } catch (thrown) {
      setFailed(Problem.from(thrown));
    }
  };
  const isOwn = !view || view.user_id === me.value?.user_id;
  return (
    <Page title={title || "Chat"} fill heading={title || "Chat"} actions={id && isAdmin.value && view && !view.answering ? (
      <TwoSteps label="Erase" confirm="Erase this conversation for ever" danger action={erase} />
    ) : undefined}>
      <div class="chat">
        <Conversations list={list} current={id} />
        <div class="conversation">
          {settingsProblem && <Failure problem={settingsProblem} />}
          {failed && <Failure problem={failed} />}
          {problem && <Failure problem={problem} retry={problem.status === 404 ? undefined : state.reload} />}
          {id && !view && !problem && <Loading what="the conversation" />}
          {view && <Messages key={id} view={view} live={live} />}
          {settings && !settings.configured && (
            <>
              <Setup />
              <pre class="text setup" tabIndex={0} role="group" aria-label="Command">{command}</pre>
              <p class="setup-actions"><Copy label="Copy" text={() => command} /> <span class="muted">An endpoint that needs a key gets it from the file in <code>--model-key-file</code>.</span></p>
            </>
          )}
          {settings?.configured && !id && (
            <Empty title="Ask something about the data.">
              The model runs Python in a session of yours and queries the database, which it cannot change. Code, outputs, figures
              and files appear here, and each run has its record.
            </Empty>
          )}
          {settings?.configured && (!id || view || begun.current === id) && (isOwn
            ? <Input key={id || "new"} chat={settings} files={files} focused={begun.current === id} answering={view?.answering ?? false} send={send} stop={state.stop} upload={take} />
            : <p class="notice">This conversation belongs to {view?.user_id}. You may read it; your reading is in the audit log.</p>)}
        </div>
      </div>
    </Page>
  );
}
