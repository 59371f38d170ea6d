package records

import (
	"context"

	"glasshouse/sandbox"
	"glasshouse/service/access"
)

// This file reads and erases conversations. Package chat writes them.

// Conversation returns a conversation that the caller may see.
func (s *Service) Conversation(ctx context.Context, caller sandbox.Key, id string) (sandbox.Conversation, error) {
	c, err := s.History.Conversation(ctx, id)
	if err == nil && !access.MaySee(caller, c.User) {
		return sandbox.Conversation{}, sandbox.Errorf(sandbox.FaultNotFound,
			"there is no such conversation, or it is not yours")
	}
	if err == nil {
		err = s.Access.AuditView(ctx, caller, "conversation/"+id, c.User)
	}
	return c, err
}

// Conversations lists conversations, the one with the newest message first, and returns the cursor of the next page.
// Callers other than admins see only their own.
func (s *Service) Conversations(ctx context.Context, caller sandbox.Key, f sandbox.RecordFilter) (
	list []sandbox.Conversation, next string, err error) {
	return s.History.Conversations(ctx, ownRecords(caller, f))
}

// EraseConversation deletes a conversation with its messages. The executions stay: EraseExecution deletes those. Only
// an admin may do that.
func (s *Service) EraseConversation(ctx context.Context, caller sandbox.Key, id string) error {
	if err := access.RequireAdmin(caller, "erase conversations"); err != nil {
		return err
	}
	c, err := s.History.Conversation(ctx, id)
	if err != nil {
		return err
	}
	if err := s.Access.Audit(ctx, caller, sandbox.AuditErased, "conversation/"+id, c.User); err != nil {
		return err
	}
	return s.History.EraseConversation(ctx, id)
}
