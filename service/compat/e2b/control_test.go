package e2b

import (
	"fmt"
	"strings"
	"testing"

	"glasshouse/sandbox"
)

// A page has a limit of bytes: with the largest metadata, fewer sandboxes are on it than with none.
func TestPageHasALimitOfBytes(t *testing.T) {
	t.Parallel()
	for metadata, want := range map[string]int{
		"": maxListed,
		strings.Repeat("x", sandbox.MaxMetadataBytes):    64,
		strings.Repeat("\x01", sandbox.MaxMetadataBytes): 11, // JSON has six bytes for each
	} {
		list := make([]sandboxInfo, 2*maxListed)
		for n := range list {
			list[n] = sandboxInfo{ID: fmt.Sprint(n), Metadata: map[string]string{"": metadata}}
		}
		page, bytes := firstPage(list, maxListed), 0
		for _, each := range page {
			bytes += len(each)
		}
		if most := maxListedBytes + 7*sandbox.MaxMetadataBytes; len(page) != want || bytes > most {
			t.Errorf("metadata of %d bytes: got %d sandboxes of %d bytes, want %d of at most %d", len(metadata),
				len(page), bytes, want, most)
		}
	}
	if page := firstPage(make([]sandboxInfo, 3), 2); len(page) != 2 {
		t.Errorf("a limit of 2 sandboxes: got %d, want 2", len(page))
	}
}
