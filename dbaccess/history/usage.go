package history

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// CPUUsed returns the CPU time that an account has used on a day, in UTC.
func (s *Store) CPUUsed(ctx context.Context, account string, day time.Time) (time.Duration, error) {
	var ms int64
	err := s.read(ctx, func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, `SELECT ms FROM cpu_usage WHERE account = $1 AND day = $2::date`,
			clean(account), day.Format(time.DateOnly)).Scan(&ms)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	return time.Duration(ms) * time.Millisecond, err
}

// AddCPU adds to the CPU time that an account has used on a day. If the connection is lost during the commit, the
// time may count twice.
func (s *Store) AddCPU(ctx context.Context, account string, day time.Time, used time.Duration) error {
	return s.exec(ctx, `INSERT INTO cpu_usage (account, day, ms) VALUES ($1, $2::date, $3)
		ON CONFLICT (account, day) DO UPDATE SET ms = cpu_usage.ms + excluded.ms`,
		clean(account), day.Format(time.DateOnly), used.Milliseconds())
}
