package history

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// CPUUsed returns the CPU time that an account has used on a day, in UTC.
func (s *Store) CPUUsed(ctx context.Context, account string, day time.Time) (time.Duration, error) {
	ms, err := query(ctx, s, s.read, pgx.RowTo[int64], `SELECT ms FROM cpu_usage WHERE account = $1 AND day = $2::date`,
		clean(account), day.Format(time.DateOnly))
	if err != nil || len(ms) == 0 {
		return 0, err
	}
	return time.Duration(ms[0]) * time.Millisecond, nil
}

// AddCPU adds to the CPU time that an account has used on a day. If the connection is lost during the commit, the
// time may count twice.
func (s *Store) AddCPU(ctx context.Context, account string, day time.Time, used time.Duration) error {
	return s.exec(ctx, `INSERT INTO cpu_usage (account, day, ms) VALUES ($1, $2::date, $3)
		ON CONFLICT (account, day) DO UPDATE SET ms = cpu_usage.ms + excluded.ms`,
		clean(account), day.Format(time.DateOnly), used.Milliseconds())
}
