-- Chats of people with a language model. The record of a message is its JSON, as the API returns it;
-- execution_id is the execution whose code or output the message holds, so that both are erased together.
CREATE TABLE conversations (
  id text PRIMARY KEY,
  owner text NOT NULL,
  title text NOT NULL,
  model text NOT NULL,
  sandbox_id text NOT NULL,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL
);
CREATE INDEX ON conversations (updated_at DESC, id DESC);
CREATE INDEX ON conversations (owner, updated_at DESC, id DESC);
CREATE TABLE messages (
  conversation_id text NOT NULL REFERENCES conversations ON DELETE CASCADE,
  position integer NOT NULL, -- within the conversation, from 1
  execution_id text NOT NULL,
  erased boolean NOT NULL DEFAULT false, -- its execution was erased: the record does not change any more
  record bytea NOT NULL,
  PRIMARY KEY (conversation_id, position)
);
CREATE INDEX ON messages (execution_id) WHERE execution_id <> '';
