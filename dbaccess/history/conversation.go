package history

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"glasshouse/sandbox"
)

var conversations = timeline[sandbox.Conversation]{
	from: "conversations", columns: `id, owner, title, model, sandbox_id, created_at, updated_at`,
	order: order{"conversations", []string{"updated_at", "id"}, []string{"timestamptz", "text"}},
	scan: func(row pgx.CollectableRow) (c sandbox.Conversation, err error) {
		err = row.Scan(&c.ID, &c.User, &c.Title, &c.Model, &c.SandboxID, &c.CreatedAt, &c.UpdatedAt)
		c.CreatedAt, c.UpdatedAt = c.CreatedAt.UTC(), c.UpdatedAt.UTC()
		return c, err
	},
	key: func(c sandbox.Conversation) []any { return []any{c.UpdatedAt, c.ID} },
}

// CreateConversation stores a new conversation.
func (s *Store) CreateConversation(ctx context.Context, c sandbox.Conversation) error {
	return s.inTurn(ctx, func() error {
		_, err := s.pool.Exec(ctx, `INSERT INTO conversations
			(id, owner, title, model, sandbox_id, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
			c.ID, clean(c.User), clean(c.Title), clean(c.Model), clean(c.SandboxID), c.CreatedAt, c.UpdatedAt)
		return err
	})
}

// Conversation returns the conversation with an id, or FaultNotFound.
func (s *Store) Conversation(ctx context.Context, id string) (sandbox.Conversation, error) {
	return queryOne(ctx, s, "conversation", conversations.scan,
		`SELECT `+conversations.columns+` FROM conversations WHERE id = $1`, clean(id))
}

// Conversations returns a page of the conversations that match the filter, the one with the newest message first, and
// the cursor of the next page.
func (s *Store) Conversations(
	ctx context.Context, f sandbox.RecordFilter,
) (list []sandbox.Conversation, next string, err error) {
	var c conditions
	c.addRecordFilter(f, "owner", "sandbox_id", "", "", "updated_at")
	c.addText(f.Text, "title")
	return conversations.page(ctx, s, ofUser(f.User), c, f.After, f.Limit)
}

// UpdateConversation stores the title, the model, the sandbox and the time of a conversation. It returns FaultNotFound
// if the conversation was erased.
func (s *Store) UpdateConversation(ctx context.Context, c sandbox.Conversation) error {
	return s.inTurn(ctx, func() error {
		tag, err := s.pool.Exec(ctx, `UPDATE conversations SET title = $2, model = $3, sandbox_id = $4, updated_at = $5
			WHERE id = $1`, clean(c.ID), clean(c.Title), clean(c.Model), clean(c.SandboxID), c.UpdatedAt)
		if err == nil && tag.RowsAffected() == 0 {
			err = notFound("conversation")
		}
		return err
	})
}

// Messages returns the messages of a conversation, the first one first.
func (s *Store) Messages(ctx context.Context, conversation string) ([]sandbox.ChatMessage, error) {
	return query(ctx, s, s.read, scanMessage,
		`SELECT record FROM messages WHERE conversation_id = $1 ORDER BY position`, clean(conversation))
}

// Message returns one message of a conversation, or FaultNotFound.
func (s *Store) Message(ctx context.Context, conversation string, position int) (sandbox.ChatMessage, error) {
	return queryOne(ctx, s, "message", scanMessage,
		`SELECT record FROM messages WHERE conversation_id = $1 AND position = $2`, clean(conversation), position)
}

func scanMessage(row pgx.CollectableRow) (m sandbox.ChatMessage, err error) {
	var record []byte
	if err = row.Scan(&record); err == nil {
		err = json.Unmarshal(record, &m)
	}
	if err != nil {
		return m, fmt.Errorf("read a message: %w", err)
	}
	return m, nil
}

// PutMessages stores messages of a conversation, each in place of the message at its position if there is one, in one
// transaction that is on disk when PutMessages returns. A message whose execution was erased stays erased. PutMessages
// returns FaultNotFound if the conversation was erased.
func (s *Store) PutMessages(ctx context.Context, conversation string, at time.Time, list ...sandbox.ChatMessage) error {
	return s.transact(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `UPDATE conversations SET updated_at = $2 WHERE id = $1`, clean(conversation), at)
		if err == nil && tag.RowsAffected() == 0 {
			err = notFound("conversation")
		}
		for _, m := range list {
			if err != nil {
				break
			}
			var record []byte
			if record, err = json.Marshal(m); err == nil {
				_, err = tx.Exec(ctx, `INSERT INTO messages (conversation_id, position, execution_id, record)
					VALUES ($1, $2, $3, $4) ON CONFLICT (conversation_id, position)
					DO UPDATE SET execution_id = excluded.execution_id, record = excluded.record
					WHERE NOT messages.erased`, clean(conversation), m.Position, clean(m.ExecutionID), record)
			}
		}
		return err
	})
}

// EraseConversation deletes a conversation and its messages. It returns FaultNotFound if there is no such conversation.
func (s *Store) EraseConversation(ctx context.Context, id string) error {
	return s.inTurn(ctx, func() error {
		tag, err := s.pool.Exec(ctx, `DELETE FROM conversations WHERE id = $1`, clean(id))
		if err == nil && tag.RowsAffected() == 0 {
			err = notFound("conversation")
		}
		return err
	})
}

// eraseMessages removes from conversations what they hold of executions: the text of the tools that made or read them,
// and the arguments of the calls, which have the code. It returns the number of messages of tools. What a model or a
// person wrote about an execution stays.
func eraseMessages(ctx context.Context, tx pgx.Tx, executions []string) (erased int, err error) {
	type stored struct {
		conversation, execution string
		record                  []byte
	}
	rows, _ := tx.Query(ctx, `SELECT conversation_id, execution_id, record FROM messages WHERE conversation_id IN (
		SELECT conversation_id FROM messages WHERE execution_id = ANY ($1))
		ORDER BY conversation_id, position FOR UPDATE`, executions)
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (m stored, err error) {
		err = row.Scan(&m.conversation, &m.execution, &m.record)
		return m, err
	})
	if err != nil {
		return 0, err
	}
	type call struct{ conversation, id string } // ids of calls are unique in a conversation
	calls := map[call]bool{}
	for n := len(list) - 1; n >= 0; n-- { // a call comes before the message of its tool
		var m sandbox.ChatMessage
		if err := json.Unmarshal(list[n].record, &m); err != nil {
			return erased, fmt.Errorf("read a message: %w", err)
		}
		changed := false
		if list[n].execution != "" && slices.Contains(executions, list[n].execution) {
			m.Erase()
			calls[call{list[n].conversation, m.CallID}] = true
			erased, changed = erased+1, true
		}
		for i := range m.Calls {
			if calls[call{list[n].conversation, m.Calls[i].ID}] {
				m.Calls[i].Arguments, m.Calls[i].Erased, changed = "", true, true
			}
		}
		if !changed {
			continue
		}
		record, err := json.Marshal(m)
		if err == nil {
			_, err = tx.Exec(ctx, `UPDATE messages SET record = $3, erased = erased OR $4
				WHERE conversation_id = $1 AND position = $2`, list[n].conversation, m.Position, record,
				m.Status == sandbox.MessageErased)
		}
		if err != nil {
			return erased, err
		}
	}
	return erased, nil
}
