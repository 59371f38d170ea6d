package inputlog

import "testing"

// A replay needs the seed of its original, which another service may have made long ago.
func TestSeedsOfAnExecutionStayTheSame(t *testing.T) {
	t.Parallel()
	keys, err := NewKeys([]byte("the secret of a data folder"))
	if err != nil {
		t.Fatal(err)
	}
	const want = "4517efe304009dc4fa2638b9768f949c5eca5c13ee74235f10a3584c26cc6c0e"
	for range 3 {
		if got := keys.Seed("execution"); got != want {
			t.Fatalf("got the seed %s, want %s", got, want)
		}
		if other := keys.Seed("other"); other == want {
			t.Fatal("two executions have the same seed")
		}
	}
}
