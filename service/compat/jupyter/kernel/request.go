package kernel

import (
	"context"

	"glasshouse/sandbox"
	"glasshouse/service/compat/jupyter/introspection"
	"glasshouse/service/compat/jupyter/socket"
	"glasshouse/service/compat/jupyter/wire"
)

// Receive implements socket.Kernel: it answers a request, or queues it behind the others. Requests on the channel
// control do not wait.
func (k *Kernel) Receive(ctx context.Context, c *socket.Client, m *wire.Message, bytes int) {
	isControl := m.Channel == wire.Control
	if m.Channel == "" {
		m.Channel = wire.Shell
	}
	err := k.config.Access.Count(c.Caller)
	switch {
	case err != nil:
	case m.Kind == "execute_request":
		k.mu.Lock()
		k.received++
		number := k.received
		k.mu.Unlock()
		err = k.enqueue(bytes, func() { k.execute(c, m, number) })
	case isControl || m.Kind == "interrupt_request" || m.Kind == "shutdown_request":
		k.answer(ctx, c, m)
	default:
		err = k.enqueue(bytes, func() { k.answer(ctx, c, m) })
	}
	if err != nil {
		k.tellState("busy", m.Header)
		k.reply(c, m, errorContent(k.failure(err)))
		k.tellState("idle", m.Header)
	}
}

// answer answers a request that runs no code.
func (k *Kernel) answer(ctx context.Context, c *socket.Client, m *wire.Message) {
	k.tellState("busy", m.Header)
	defer k.tellState("idle", m.Header)
	content, err := k.contentOf(ctx, c, m)
	if err != nil {
		content = errorContent(k.failure(err))
	}
	if content == nil { // there is no answer, or it is sent
		return
	}
	if content["status"] == nil {
		content["status"] = "ok"
	}
	k.reply(c, m, content)
}

// contentOf returns the content of the answer to a request. It is nil for a message of an unknown type, as in Jupyter,
// and for one that was answered.
func (k *Kernel) contentOf(ctx context.Context, c *socket.Client, m *wire.Message) (wire.Object, error) {
	in := introspection.Sandbox{Live: k.config.Live, Records: k.config.Records, ID: k.SandboxID, Caller: c.Caller}
	switch m.Kind {
	case "kernel_info_request":
		return introspection.Info(k.config.Version, k.spec.Python), nil
	case "complete_request":
		return introspection.Complete(ctx, in, m)
	case "inspect_request":
		return introspection.Inspect(ctx, in, m)
	case "is_complete_request":
		return introspection.IsComplete(ctx, in, m)
	case "history_request":
		return introspection.History(ctx, in, m)
	case "comm_info_request":
		return wire.Object{"comms": wire.Object{}}, nil
	case "comm_open":
		k.refuseComm(m)
		return nil, nil
	case "interrupt_request":
		k.Interrupt()
		return wire.Object{}, nil
	case "shutdown_request":
		return k.shutdown(ctx, c, m)
	}
	return nil, nil
}

// refuseComm closes a comm, for which this kernel has no targets. Nobody answers for an ID that is too long to repeat:
// the protocol has no error for it.
func (k *Kernel) refuseComm(m *wire.Message) {
	var in struct {
		ID string `json:"comm_id"`
	}
	if m.DecodeContent(&in) == nil && len(in.ID) <= sandbox.MaxNameBytes {
		k.broadcast("comm_close", m.Header, wire.Object{"comm_id": in.ID, "data": wire.Object{}})
	}
}

// shutdown ends or restarts the kernel.
func (k *Kernel) shutdown(ctx context.Context, c *socket.Client, m *wire.Message) (wire.Object, error) {
	var in struct{ Restart bool }
	if err := m.DecodeContent(&in); err != nil {
		return nil, err
	}
	if in.Restart {
		return wire.Object{"restart": true}, k.Restart(ctx, c.Caller)
	}
	content := wire.Object{"status": "ok", "restart": false}
	k.reply(c, m, content) // before the connection ends
	k.broadcast(m.ReplyKind(), m.Header, content)
	return nil, k.config.Live.Delete(ctx, c.Caller, k.SandboxID)
}
