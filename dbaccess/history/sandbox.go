package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"glasshouse/policy"
	"glasshouse/sandbox"
)

// sandboxCreated is the record of a sandbox's creation in the log.
type sandboxCreated struct {
	ID        string        `json:"sandbox_created"`
	Owner     string        `json:"owner"`
	Policy    policy.Policy `json:"policy"`
	Ephemeral bool          `json:"ephemeral"`
	State     sandbox.State `json:"state"`
	CreatedAt time.Time     `json:"created_at"`
	Node      string        `json:"node"`
}

// sandboxEnded is the record of a sandbox's end in the log.
type sandboxEnded struct {
	ID      string        `json:"sandbox_ended"`
	Owner   string        `json:"owner"`
	State   sandbox.State `json:"state"`
	EndedAt time.Time     `json:"ended_at"`
}

// CreateSandbox stores a new sandbox. When it returns nil, the record is in the log. It returns FaultUnavailable in the
// same cases as Begin.
func (s *Store) CreateSandbox(ctx context.Context, b sandbox.Sandbox) error {
	if err := s.checkBegin(); err != nil {
		return err
	}
	r, err := createdRow(sandboxCreated{b.ID, b.Owner, b.Policy, b.Ephemeral, b.State, b.CreatedAt, s.owner.node.ID})
	if err != nil {
		return err
	}
	if err := s.writer.waitForSpace(ctx, r.user); err != nil {
		return unavailable(err)
	}
	return unavailable(s.writer.write(ctx, r, beginTimeout))
}

// ReopenSandbox makes an ended sandbox one of this node that has not ended.
func (s *Store) ReopenSandbox(ctx context.Context, id string) error {
	return s.exec(ctx, `UPDATE sandboxes SET state = $2, ended_at = NULL, node = $3 WHERE id = $1`,
		clean(id), string(sandbox.StateActive), s.owner.node.ID)
}

// EndSandbox stores how and when a sandbox of an owner ended. A second call changes nothing. When it returns nil, the
// record is on disk, as after Finish.
func (s *Store) EndSandbox(ctx context.Context, id, owner string, state sandbox.State, at time.Time) error {
	r, err := endedRow(sandboxEnded{id, owner, state, at})
	if err != nil {
		return err
	}
	return unavailable(s.writer.write(ctx, r, finishTimeout))
}

// Sandbox returns an active or ended sandbox, or FaultNotFound. LastUsed is the time when its last execution began.
func (s *Store) Sandbox(ctx context.Context, id string) (sandbox.Sandbox, error) {
	var b sandbox.Sandbox
	var policy []byte
	var state string
	err := s.readExecutions(ctx, ofSandbox(id), func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, `SELECT id, owner, policy, ephemeral, state, created_at, ended_at,
				greatest(created_at, (SELECT max(e.created_at) FROM executions e WHERE e.sandbox_id = sandboxes.id))
			FROM sandboxes WHERE id = $1`, clean(id)).
			Scan(&b.ID, &b.Owner, &policy, &b.Ephemeral, &state, &b.CreatedAt, &b.EndedAt, &b.LastUsed)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return b, notFound("sandbox")
	}
	if err != nil {
		return b, err
	}
	b.State, b.CreatedAt, b.LastUsed = sandbox.State(state), b.CreatedAt.UTC(), b.LastUsed.UTC()
	if b.EndedAt != nil {
		*b.EndedAt = b.EndedAt.UTC()
	}
	if err := json.Unmarshal(policy, &b.Policy); err != nil {
		return b, fmt.Errorf("read a sandbox's policy: %w", err)
	}
	return b, nil
}
