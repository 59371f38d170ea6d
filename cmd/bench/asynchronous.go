package main

import "context"

// unflushed is the setting with which answers do not wait for the disk.
const unflushed = "--synchronous-commit=false"

// asynchronously has rows measured on a service of their own, which answers before it
// flushes: of a run that takes a third of a millisecond, the disk has a third. Their names say so.
func (b *bench) asynchronously(ctx context.Context, rows func()) {
	if ctx.Err() != nil {
		return
	}
	progress("starting a service with %s", unflushed)
	s, err := b.start(ctx, unflushed)
	if err != nil {
		b.report.failed("a service with "+unflushed, err)
		return
	}
	defer s.Close()
	own, client := b.report, b.client
	b.report, b.client = &report{}, s.client
	rows()
	for _, r := range b.report.Rows {
		r.Name += ", " + unflushed
		own.add(r)
	}
	b.report, b.client = own, client
}
