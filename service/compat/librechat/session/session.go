// Package session knows which sandboxes the sessions of LibreChat are.
//
// Uploads are kept in a sandbox of their own, a store, which runs nothing, because they come before the session that
// uses them. LibreChat uploads a file again if its session has ended; so the session that was used longest ago ends if
// a caller has no sandbox left.
package session

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"sync"
	"time"

	"glasshouse/sandbox"
	"glasshouse/service/compat"
	"glasshouse/service/live"
)

// Sessions are the sessions of all callers.
type Sessions struct {
	sandboxes *live.Service
	live      *compat.Live[session]

	mu         sync.Mutex
	lastUpload time.Time
}

// New returns Sessions without any.
func New(sandboxes *live.Service) *Sessions {
	return &Sessions{sandboxes: sandboxes, live: compat.NewLive[session](sandboxes)}
}

// session is a sandbox that was created for LibreChat.
type session struct {
	user     string
	isStore  bool   // it has uploads, and runs nothing
	storeFor string // who may share the store
	lastUsed time.Time
}

// IDLength is the length of the IDs that LibreChat accepts. Their characters are those of base64url.
const IDLength = 21

// ID returns the ID that clients have for a sandbox, whose ID has 126 bits.
func ID(sandboxID string) string {
	bits, err := hex.DecodeString(sandboxID)
	if err != nil {
		return sandboxID
	}
	return base64.RawURLEncoding.EncodeToString(bits)[:IDLength]
}

// SandboxID undoes ID. It returns an ID that no sandbox has for a text that is none.
func SandboxID(session string) string {
	bits, err := base64.RawURLEncoding.DecodeString(session + "A")
	if err != nil || len(session) != IDLength {
		return "none"
	}
	return hex.EncodeToString(bits)
}

// Open creates a session, and returns the ID of its sandbox. If the caller has too many sandboxes, it ends the caller's
// session that was used longest ago, but none of those in needed, whose files the new session is to get.
func (s *Sessions) Open(ctx context.Context, caller sandbox.Key, needed ...string) (string, error) {
	return s.open(ctx, caller, session{}, needed)
}

func (s *Sessions) open(ctx context.Context, caller sandbox.Key, opened session, needed []string) (string, error) {
	for _, id := range needed { // before other requests of this moment choose a session to end
		s.NoteUse(caller, id)
	}
	opened.user = caller.User
	for {
		sb, err := s.sandboxes.CreateCompat(ctx, caller, nil)
		if err == nil {
			opened.lastUsed = s.sandboxes.Clock()
			s.live.Put(sb.ID, opened)
			return sb.ID, nil
		}
		oldest := s.oldest(caller, needed)
		if sandbox.FaultOf(err) != sandbox.FaultLimit || oldest == "" {
			return "", err
		}
		if err := s.sandboxes.Delete(ctx, caller, oldest); err != nil && sandbox.FaultOf(err) != sandbox.FaultGone {
			return "", err
		}
	}
}

// oldest returns the caller's session that was used longest ago and is not needed, or "".
func (s *Sessions) oldest(caller sandbox.Key, needed []string) (id string) {
	all := s.live.All()
	for other, each := range all {
		if each.user != caller.User || slices.Contains(needed, other) {
			continue
		}
		if id == "" || each.lastUsed.Before(all[id].lastUsed) {
			id = other
		}
	}
	return id
}

// Use returns whether a sandbox is a live session of the caller in which code may run, and notes its use.
func (s *Sessions) Use(ctx context.Context, caller sandbox.Key, id string) bool {
	used, ok := s.live.Get(id)
	if _, err := s.sandboxes.Sandbox(ctx, caller, id); err != nil || !ok || used.isStore {
		return false
	}
	s.NoteUse(caller, id)
	return true
}

// NoteUse notes that the caller uses a session, if it is one of the caller's.
func (s *Sessions) NoteUse(caller sandbox.Key, id string) {
	if used, ok := s.live.Get(id); ok && used.user == caller.User {
		used.lastUsed = s.sandboxes.Clock()
		s.live.Put(id, used)
	}
}

// IsStore reports whether a sandbox has uploads.
func (s *Sessions) IsStore(id string) bool {
	found, _ := s.live.Get(id)
	return found.isStore
}

// UploadTime returns the time of an upload, in whole microseconds, which is later than those before it. The times of a
// file system may have steps of some milliseconds, and do not say which of two uploads, or of an upload and a change by
// code, came first.
func (s *Sessions) UploadTime() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now().Truncate(time.Microsecond)
	if !now.After(s.lastUpload) {
		now = s.lastUpload.Add(time.Microsecond)
	}
	s.lastUpload = now
	return now
}

// Store returns the sandbox that has the uploads of one of the caller's users, and creates it if there is none.
func (s *Sessions) Store(ctx context.Context, caller sandbox.Key, user string) (string, error) {
	for id, each := range s.live.All() {
		if each.isStore && each.user == caller.User && each.storeFor == user {
			s.NoteUse(caller, id)
			return id, nil
		}
	}
	return s.open(ctx, caller, session{isStore: true, storeFor: user}, nil)
}
