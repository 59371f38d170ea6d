package limit

import (
	"cmp"
	"sync"
	"time"
)

// Work keeps an account of CPU time for each user. The service charges it for the work that a
// user's processes make it do, such as reading what they send. The account earns the CPU time
// that these processes use themselves, and Floor all the time. So work that costs the service
// more than its user is slowed down, and never refused. The zero value is ready to use.
type Work struct {
	Floor float64 // CPUs that a user's work gets in any case; 0 means a tenth of one

	mu       sync.Mutex
	accounts map[string]*workAccount
}

// workAccount is the account of one user.
type workAccount struct {
	balance time.Duration // at most workBurst; negative: the user must wait
	at      time.Time     // when the balance was computed
}

const (
	// workBurst is the CPU time that a user's work may take before it is compared with what the
	// user's processes use. It is enough for all notes, outputs and results of an ordinary run.
	workBurst        = 250 * time.Millisecond
	defaultWorkFloor = 0.1
	// maxWorkWait is the longest wait between two calls of Charge, as the user may earn meanwhile.
	maxWorkWait = 50 * time.Millisecond
)

// Charge charges a user for work that is done, and credits the CPU time that the user's
// processes have used since it was last called for them. It returns how long the user's next work
// must wait; the caller then calls Charge again with no work, until it returns 0.
func (w *Work) Charge(user string, work, earned time.Duration, now time.Time) (wait time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := w.accounts[user]
	if a == nil {
		a = &workAccount{balance: workBurst, at: now}
		if w.accounts == nil {
			w.accounts = map[string]*workAccount{}
		}
		w.forgetFull(now)
		w.accounts[user] = a
	}
	a.balance, a.at = w.balanceAt(a, now, earned)-work, now
	if a.balance >= 0 {
		return 0
	}
	return min(time.Duration(float64(-a.balance)/w.floor()), maxWorkWait)
}

func (w *Work) floor() float64 { return cmp.Or(w.Floor, defaultWorkFloor) }

func (w *Work) balanceAt(a *workAccount, now time.Time, earned time.Duration) time.Duration {
	floor := time.Duration(w.floor() * float64(max(now.Sub(a.at), 0)))
	return min(a.balance+floor+earned, workBurst)
}

// forgetFull removes the accounts that are like new ones. The caller holds mu.
func (w *Work) forgetFull(now time.Time) {
	for user, a := range w.accounts {
		if w.balanceAt(a, now, 0) == workBurst {
			delete(w.accounts, user)
		}
	}
}
