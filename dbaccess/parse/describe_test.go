package parse

import "testing"

func TestWritesOfAllRowsAreKnown(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]Write{
		"DELETE FROM users":                                                   {Verb: "DELETE", IsWhole: true},
		"DELETE FROM users WHERE true":                                        {Verb: "DELETE", IsWhole: true},
		"UPDATE users SET a = 1 WHERE 1 = 1":                                  {Verb: "UPDATE", IsWhole: true},
		"UPDATE users SET a = 1 WHERE 'column_ref' <> $1":                     {Verb: "UPDATE", IsWhole: true},
		"UPDATE users SET a = 1 WHERE id = 1":                                 {Verb: "UPDATE"},
		"DELETE FROM users WHERE EXISTS (SELECT 1)":                           {Verb: "DELETE"},
		"DELETE FROM users WHERE random() < 0.5":                              {Verb: "DELETE"},
		"INSERT INTO users VALUES (1)":                                        {Verb: "INSERT"},
		"INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING":                     {Verb: "INSERT"},
		"INSERT INTO t (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET id = 2": {Verb: "INSERT", IsUpsert: true},
		"SELECT 1": {},
	} {
		if got := describeWrite(sql); got != want {
			t.Errorf("%s: got %+v, want %+v", sql, got, want)
		}
	}
}
