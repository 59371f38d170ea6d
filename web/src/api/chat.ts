// The records of the chat.

export interface Chat {
  configured: boolean;
  model?: string;
  host?: string;
  max_input_chars: number;
  max_rounds: number;
  max_context_chars: number;
}

export interface Conversation {
  conversation_id: string;
  user_id: string;
  title: string;
  model: string;
  sandbox_id?: string;
  created_at: string;
  updated_at: string;
}

export interface ToolCall {
  id: string;
  tool: string;
  arguments: string;
  erased?: boolean;
}

export interface Message {
  position: number;
  role: "user" | "assistant" | "tool" | "note";
  status: "complete" | "running" | "failed" | "cut" | "erased";
  note?: "problem" | "stopped" | "interrupted" | "new-session";
  text: string;
  calls?: ToolCall[];
  call_id?: string;
  tool?: string;
  execution_id?: string;
  left_out?: number;
  created_at: string;
}

export interface ConversationView extends Conversation {
  messages: Message[];
  answering: boolean;
}
