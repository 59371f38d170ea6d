package history

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"glasshouse/sandbox"
)

// hoursOfWork has the rows of execution_hours, and rows that take replays and explanations off. $1 is the first hour.
const hoursOfWork = `(
	SELECT owner, hour, executions, failed, rows_read, cpu_ms FROM execution_hours
	UNION ALL
	SELECT owner, date_trunc('hour', created_at, 'UTC'), -1, -(status IN ('failed', 'timeout', 'killed'))::int,
		-rows_read, -cpu_ms FROM executions WHERE created_at >= $1 AND ` + isBesidesWork + `) hours`

// Activity returns what the executions of a user, or of all if user is "", did in each hour from a time on, and their
// CPU time by key and day. Hours and days without executions are missing.
func (s *Store) Activity(ctx context.Context, f sandbox.ActivityFilter) (out sandbox.Activity, err error) {
	read := func(ctx context.Context, read func(context.Context) error) error {
		return s.readExecutions(ctx, ofUser(f.User), read)
	}
	hours := "execution_hours"
	if f.IsWork {
		hours = hoursOfWork
	}
	out.Hours, err = query(ctx, s, read, scanActivity, `SELECT hour, sum(executions)::bigint, sum(failed)::bigint,
			sum(rows_read)::bigint, sum(cpu_ms) FROM `+hours+`
		WHERE hour >= $1 AND ($2 = '' OR owner = $2) GROUP BY hour HAVING sum(executions) > 0 ORDER BY hour`,
		f.Since, clean(f.User))
	if err != nil {
		return out, err
	}
	out.Users, err = query(ctx, s, read, scanUserActivity, `SELECT owner, sum(executions)::bigint, sum(failed)::bigint,
			sum(rows_read)::bigint, sum(cpu_ms) FROM `+hours+`
		WHERE hour >= $1 AND ($2 = '' OR owner = $2) GROUP BY owner HAVING sum(executions) > 0
		ORDER BY sum(cpu_ms) DESC, owner LIMIT 20`, f.Since, clean(f.User))
	if err != nil {
		return out, err
	}
	// Keys that were created with another share its account, whose id is that of the first key.
	out.Keys, err = query(ctx, s, s.read, scanKeyCost, `SELECT u.account, coalesce(k.name, ''), coalesce(k.owner, ''),
			u.day, u.ms FROM cpu_usage u LEFT JOIN keys k ON k.id = u.account
		WHERE u.day >= ($1::timestamptz AT TIME ZONE 'UTC')::date AND ($2 = '' OR k.owner = $2)
		ORDER BY u.day, u.ms DESC LIMIT 1000`,
		f.Since, clean(f.User))
	return out, err
}

func scanActivity(row pgx.CollectableRow) (a sandbox.HourActivity, err error) {
	err = row.Scan(&a.Hour, &a.Executions, &a.Failed, &a.RowsRead, &a.CPUMS)
	a.Hour = a.Hour.UTC()
	return a, err
}

func scanUserActivity(row pgx.CollectableRow) (a sandbox.UserActivity, err error) {
	err = row.Scan(&a.User, &a.Executions, &a.Failed, &a.RowsRead, &a.CPUMS)
	return a, err
}

func scanKeyCost(row pgx.CollectableRow) (k sandbox.KeyCost, err error) {
	var day time.Time
	err = row.Scan(&k.KeyID, &k.Name, &k.User, &day, &k.CPUMS)
	k.Day = day.Format(time.DateOnly)
	return k, err
}
