import { useEffect, useRef, useState } from "preact/hooks";
import type { Conversation, Chat as Settings } from "../api/chat";
import { get, post, remove } from "../api/client";
import { Problem } from "../api/problem";
import { checkSize, type UploadList, upload } from "../api/upload";
import { dateTime, zone } from "../format";
import { Copy, Empty, Failure, Loading, TwoSteps } from "../parts/feedback";
import { type List, More, useList } from "../parts/list";
import { useLoaded } from "../parts/loaded";
import { navigate } from "../router";
import { isAdmin, me } from "../session";
import { Page } from "../shell";
import { Input } from "./chat_input";
import { Messages } from "./chat_messages";
import { conversationPath, useConversation } from "./chat_state";

const untitled = "New conversation";

const command = `bin/glasshouse serve \\
  --model-url http://127.0.0.1:11434/v1 \\
  --model-name qwen3:8b`;

function Setup() {
  return (
    <Empty title="No language model is configured.">
      Chat with a language model that runs Python and queries the database. To turn it on, the operator stops the
      service and starts it with the same settings as before and the address of any OpenAI-compatible endpoint, for
      example:
    </Empty>
  );
}

function Conversations({ list, current, canBegin }: { list: List<Conversation>; current: string; canBegin: boolean }) {
  const [open, setOpen] = useState(false);
  useEffect(() => setOpen(false), [current]);
  return (
    <nav class={open ? "conversations open" : "conversations"} aria-label="Conversations">
      <div class="top">
        {canBegin && (
          <a class="button" href="/ui/chat">
            New chat
          </a>
        )}
        <button class="toggle" aria-expanded={open} aria-controls="conversations" onClick={() => setOpen(!open)}>
          Conversations
        </button>
      </div>
      {list.rows.length === 0 &&
        (list.problem ? (
          <Failure problem={list.problem} retry={list.reload} />
        ) : list.isLoading ? (
          <Loading what="conversations" />
        ) : (
          <p class="muted">Your conversations appear here.</p>
        ))}
      <ul id="conversations">
        {list.rows.map((c) => (
          <li key={c.conversation_id}>
            <a
              href={`/ui/chat/${encodeURIComponent(c.conversation_id)}`}
              aria-current={c.conversation_id === current ? "page" : undefined}
            >
              <span class="title">{c.title || untitled}</span>
              <span class="muted">
                {c.user_id === me.value?.user_id ? "" : `${c.user_id}, `}
                {dateTime(c.updated_at)} {zone()}
              </span>
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
  const { answer: settings, problem: settingsProblem } = useLoaded<Settings>("/chat");
  const state = useConversation(id);
  const { view, live, problem } = state;
  const list = useList<Conversation>("/chat/conversations", "conversations", { user_id: me.value?.user_id });
  const [version, setVersion] = useState(0);
  const [failed, setFailed] = useState<Problem>();
  const filesOf = (sandbox: string) => `/sandbox/${encodeURIComponent(sandbox)}/files`;
  const files = useLoaded<UploadList>(view?.sandbox_id ? filesOf(view.sandbox_id) : "", [version]).answer?.files ?? [];
  const title = view?.title;
  useEffect(() => {
    if (title && !list.rows.some((c) => c.conversation_id === id && c.title === title)) list.reload();
  }, [id, title]);

  const begun = useRef(""); // the conversation that this page has just begun; the next attempt uses it if one failed
  useEffect(() => {
    if (id !== begun.current) begun.current = "";
  }, [id]);
  const begin = async () => (begun.current ||= (await post<Conversation>("/chat/conversations")).conversation_id);
  const open = (conversation: string) => navigate(`/ui/chat/${encodeURIComponent(conversation)}`, true);
  const send = async (text: string) => {
    if (id) return state.send(text);
    const made = await begin();
    await post(`${conversationPath(made)}/messages`, { text });
    open(made);
  };
  const take = async (chosen: File[], onProgress: (sent: number) => void) => {
    const conversation = id || (await begin());
    const { sandbox_id: sandbox } = await post<{ sandbox_id: string }>(`${conversationPath(conversation)}/session`);
    const { upload_max_bytes: max } = await get<UploadList>(filesOf(sandbox));
    for (const file of chosen) checkSize(file, max);
    let before = 0; // bytes of the files that are stored
    for (const file of chosen) {
      await upload(sandbox, file, (sent) => onProgress(before + sent));
      before += file.size;
    }
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
    <Page
      title={title || "Chat"}
      fill
      heading={title || "Chat"}
      actions={
        id && isAdmin.value && view && !view.answering ? (
          <TwoSteps label="Erase" confirm="Erase this conversation for ever" danger action={erase} />
        ) : undefined
      }
    >
      <div class="chat">
        <Conversations list={list} current={id} canBegin={settings?.configured ?? false} />
        <div class="conversation">
          {settingsProblem && <Failure problem={settingsProblem} />}
          {failed && <Failure problem={failed} />}
          {problem && <Failure problem={problem} retry={problem.status === 404 ? undefined : state.reload} />}
          {id && !view && !problem && <Loading what="the conversation" />}
          {view && <Messages key={id} view={view} live={live} />}
          {settings && !settings.configured && (
            <>
              <Setup />
              <pre class="text setup" tabIndex={0} role="group" aria-label="Command">
                {command}
              </pre>
              <p class="setup-actions">
                <Copy label="Copy the command" text={() => command} />
              </p>
              <p class="setup-key muted">
                An endpoint that needs a key gets it from the file in <code>--model-key-file</code>.
              </p>
            </>
          )}
          {settings?.configured && !id && (
            <Empty title="Ask something about the data.">
              The model runs Python in a session of yours and queries the database, which it cannot change. Code,
              outputs, figures and files appear here, and each run has its record.
            </Empty>
          )}
          {settings?.configured &&
            (!id || view || begun.current === id) &&
            (isOwn ? (
              <Input
                key={id || "new"}
                chat={settings}
                files={files}
                focused={begun.current === id}
                answering={view?.answering ?? false}
                send={send}
                stop={state.stop}
                upload={take}
              />
            ) : (
              <p class="notice">
                This conversation belongs to {view?.user_id}. You can only read it. The audit log records that you
                opened it.
              </p>
            ))}
        </div>
      </div>
    </Page>
  );
}
