package httpapi_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"glasshouse/dbaccess"
	"glasshouse/dbaccess/dbtest"
	"glasshouse/dbaccess/embedded"
	"glasshouse/policy/limit"
	"glasshouse/sandbox"
	"glasshouse/service/database"
	"glasshouse/service/httpapi"
)

var namedDatabases atomic.Int64

// newDatabase makes a database with a table of orders, and returns its name in PostgreSQL. All orders have the seller.
func newDatabase(t *testing.T, seller string) string {
	t.Helper()
	name := fmt.Sprintf("named_%d", namedDatabases.Add(1))
	execAs(t, embedded.RoleAdmin, "postgres", "CREATE DATABASE "+name+" OWNER "+embedded.RoleOwner,
		"REVOKE ALL ON DATABASE "+name+" FROM PUBLIC",
		"GRANT CONNECT ON DATABASE "+name+" TO "+embedded.RoleReader+", "+embedded.RoleWriter)
	execAs(t, embedded.RoleOwner, name,
		`CREATE TABLE orders (id int PRIMARY KEY, seller text NOT NULL, email text NOT NULL)`,
		`INSERT INTO orders SELECT n, '`+seller+`', 'a@example.com' FROM generate_series(1, 3) n`,
		`CREATE FUNCTION tax(n int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT n * 2'`,
		`GRANT SELECT ON orders TO `+embedded.RoleReader,
		`GRANT SELECT, INSERT, UPDATE, DELETE ON orders TO `+embedded.RoleWriter)
	execAs(t, embedded.RoleAdmin, name, `GRANT EXECUTE ON FUNCTION tax TO `+embedded.RoleReader)
	return name
}

// execAs runs statements of an operator.
func execAs(t testing.TB, role, database string, statements ...string) {
	t.Helper()
	conn, err := dbtest.Connect(context.Background(), testPostgres.URL(role, database))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for _, statement := range statements {
		if _, err := conn.Exec(context.Background(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// link is a socket in front of the test's PostgreSQL that a test cuts and mends.
type link struct {
	target string
	path   string
	mu     sync.Mutex
	listen net.Listener
	open   map[net.Conn]bool
}

// newLink returns a link that is cut, and the URL of a database behind it.
func newLink(t *testing.T, role, database string) (*link, string) {
	t.Helper()
	direct, err := url.Parse(testPostgres.URL(role, database))
	if err != nil {
		t.Fatal(err)
	}
	query := direct.Query()
	l := &link{open: map[net.Conn]bool{}}
	socket := ".s.PGSQL." + query.Get("port")
	if query.Get("port") == "" {
		socket = ".s.PGSQL.5432"
	}
	l.target = filepath.Join(query.Get("host"), socket)
	dir := t.TempDir()
	l.path = filepath.Join(dir, socket)
	query.Set("host", dir)
	direct.RawQuery = query.Encode()
	t.Cleanup(l.cut)
	return l, direct.String()
}

// mend lets connections through.
func (l *link) mend(t *testing.T) {
	t.Helper()
	listen, err := net.Listen("unix", l.path)
	if err != nil {
		t.Fatal(err)
	}
	l.mu.Lock()
	l.listen = listen
	l.mu.Unlock()
	go func() {
		for {
			from, err := listen.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("unix", l.target)
			if err != nil {
				from.Close()
				continue
			}
			l.mu.Lock()
			l.open[from], l.open[to] = true, true
			l.mu.Unlock()
			go func() { _, _ = io.Copy(to, from); to.Close() }()
			go func() { _, _ = io.Copy(from, to); from.Close() }()
		}
	}()
}

// cut ends all connections, as a server that stops.
func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listen == nil {
		return
	}
	l.listen.Close()
	l.listen = nil
	for conn := range l.open {
		conn.Close()
	}
	clear(l.open)
}

// serveDatabases starts a service that has the demo as knowledge, and other databases. It returns a client of an
// admin.
func serveDatabases(t *testing.T, others ...dbaccess.Config) client {
	t.Helper()
	config := testConfig
	config.databases = withDatabases(t, others...)
	var results *limit.Results
	for _, database := range others {
		results = cmp.Or(results, database.Results)
	}
	s := newServices(config)
	api := s.api(config.log)
	api.MCP, api.Results = s.mcp(config.log), results
	server := httptest.NewServer(httpapi.New(api))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		s.drain(ctx)
		s.close()
		server.Close()
	})
	return client{secret: admin.secret, server: server.URL}
}

// withDatabases returns the databases of the tests, and others.
func withDatabases(t *testing.T, others ...dbaccess.Config) []database.Database {
	t.Helper()
	list := slices.Clone(testConfig.databases)
	for _, c := range others {
		reader, err := dbaccess.Open(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(reader.Close)
		list = append(list, database.Database{Name: c.Name, Reader: reader, Writer: reader})
	}
	return list
}

func (c client) newUser(t *testing.T, more map[string]any) client {
	t.Helper()
	body := map[string]any{"name": "n", "user_id": fmt.Sprintf("%s-%d", t.Name(), users.Add(1))}
	for name, value := range more {
		body[name] = value
	}
	made, _ := c.newKey(t, body)
	return made
}

// salesAndStaff are two databases in addition to the demo, each with its own masks and functions.
func salesAndStaff(t *testing.T) (sales, staff dbaccess.Config, names [2]string) {
	t.Helper()
	names = [2]string{newDatabase(t, "sales"), newDatabase(t, "staff")}
	sales = dbaccess.Config{
		Name: "sales", URL: testPostgres.URL(embedded.RoleReader, names[0]),
		WriterURL:   testPostgres.URL(embedded.RoleWriter, names[0]),
		MaskColumns: []string{"orders.email"}, NeedsAudit: true,
	}
	staff = dbaccess.Config{
		Name: "staff", URL: testPostgres.URL(embedded.RoleReader, names[1]), AllowFunctions: []string{"tax"},
		NeedsAudit: true,
	}
	return sales, staff, names
}

// Every helper and route takes the name of a database, each with its own catalogue, masks and functions. The record
// says which database a statement was sent to.
func TestStatementsNameTheirDatabase(t *testing.T) {
	t.Parallel()
	sales, staff, _ := salesAndStaff(t)
	c := serveDatabases(t, sales, staff).newUser(t, nil)
	id := c.create(t, nil)
	const sellers = "SELECT DISTINCT seller FROM orders"
	for _, x := range []struct{ code, want string }{
		{`[await db_query("` + sellers + `", database=name) for name in ["sales", "staff"]]`,
			`[[{"seller":"sales"}],[{"seller":"staff"}]]`},
		{`later = db_frame("SELECT id FROM orders WHERE id > :n ORDER BY id", {"n": 1}, database="staff")
[list(later.id), db_query("SELECT 1 AS n", None, "knowledge")]`,
			`[[2,3],[{"n":1}]]`},
		{`masked = [[c["column_name"] for c in db_schema("orders", database="sales") if c["masked"]],
    [c["column_name"] for c in await db_schema("orders", "staff") if c["masked"]]]
[db_tables(database="sales"), "users" in db_tables(), "orders" in db_tables(), *masked]`,
			`[["orders"],true,true,["email"],[]]`},
		{`db_explain("SELECT * FROM orders", database="staff")["plan"]["Node Type"]`, `"Seq Scan"`},
		{`first = "SELECT email FROM orders WHERE id = 1"
[db_query(first, database=name)[0]["email"] for name in ["sales", "staff"]]`,
			`["***","a@example.com"]`},
		{`told = []
for ask, database in [
        (lambda d: db_query("SELECT tax(1) AS n", database=d), "sales"),
        (lambda d: db_query("SELECT tax(1) AS n", database=d), "staff"),
        (lambda d: db_query("SELECT lower(email) FROM orders", database=d), "sales"),
        (lambda d: db_tables(d), "sale"), (lambda d: db_schema("orders", d), "x"),
        (lambda d: db_frame("SELECT 1", database=d), ""), (lambda d: db_query("SELECT 1", database=d), 7),
        (lambda d: db_explain("SELECT 1", database=d), "k" * 300)]:
    try:
        got = ask(database)
        told.append("ok" if isinstance(got, list) or len(got) == 1 else got)
    except (DatabaseError, TypeError) as e:
        told.append([getattr(e, "reason", type(e).__name__), getattr(e, "nearest", "")])
told`,
			`[["function-not-allowed",""],"ok",["masked-column",""],["unknown-database","sales"],` +
				`["unknown-database",""],"ok",["TypeError",""],["unknown-database",""]]`},
	} {
		a := c.run(t, id, x.code)
		if got := compactJSON(a.get("result")); got != x.want {
			t.Errorf("%s\n  got  %s %v\n  want %s", x.code, got, a.get("exception"), x.want)
		}
	}
	a := c.run(t, id, `db_query("SELECT 1", database="hr")`)
	if got := compactJSON(a.get("exception.message")); !strings.Contains(got, "knowledge, sales, staff") {
		t.Errorf("got %s, want the names of the databases", got)
	}

	for _, path := range []string{"/database", "/sandbox/" + id + "/database"} {
		a = c.ok(t, "POST", path+"/query", map[string]any{"query": sellers, "database": "sales"})
		if got := compactJSON(a.get("results")); got != `[{"seller":"sales"}]` {
			t.Errorf("%s: got %s", path, a.text)
		}
		a = c.ok(t, "GET", path+"/schema?database=staff", nil)
		if got := compactJSON(a.get("schema.tables")); got != `["orders"]` {
			t.Errorf("%s: got the tables %s", path, got)
		}
		for _, a := range []answer{
			c.do(t, "GET", path+"/schema?database=hr", nil),
			c.do(t, "POST", path+"/query", map[string]any{"query": "SELECT 1", "database": "hr"}),
		} {
			wantProblem(t, a, http.StatusUnprocessableEntity, "query-refused", `"reason":"unknown-database"`,
				"knowledge, sales, staff")
		}
	}
	a = c.ok(t, "POST", "/sandbox/agent/analyze-data",
		map[string]any{"table_name": "orders", "database": "sales", "analysis_type": "summary"})
	if a.get("result.total_rows") != 3.0 {
		t.Errorf("analyze-data: got %s, want the 3 orders of sales", a.text)
	}

	// The record of each statement has the name, of the default database too, and lists select by it.
	for name, want := range map[string]string{"sales": "orders", "knowledge": "SELECT 1", "hr": "SELECT 1"} {
		list := c.ok(t, "GET", "/statements?database="+name, nil).get("statements").([]any)
		if len(list) == 0 {
			t.Errorf("%s: got no statement", name)
		}
		for _, s := range list {
			s := s.(map[string]any)
			if s["database"] != name || name != "sales" && !strings.HasPrefix(s["query"].(string), want) {
				t.Errorf("%s: got the statement %v", name, s)
			}
		}
	}
	kinds := map[string]bool{}
	for _, s := range c.ok(t, "GET", "/statements/top", nil).get("statements").([]any) {
		if s := s.(map[string]any); s["query"] == sellers {
			kinds[s["database"].(string)] = true
		}
	}
	if len(kinds) != 2 {
		t.Errorf("got statistics for the databases %v, want sales and staff apart", kinds)
	}
}

// A key uses all databases, or those of its list. The first of the list is its default. It learns no other name, and
// creates no key that may use more.
func TestKeysMayUseSomeDatabases(t *testing.T) {
	t.Parallel()
	sales, staff, _ := salesAndStaff(t)
	root := serveDatabases(t, sales, staff)
	// The first answer of a database comes after the audit of its login, and is late on a busy machine.
	eventually(t, "every database to answer", func() bool {
		return root.ok(t, "GET", "/readyz", nil).get("unavailable_databases") == 0.0
	})
	names := func(c client) (list []string) {
		for _, d := range c.ok(t, "GET", "/databases", nil).get("databases").([]any) {
			d := d.(map[string]any)
			if d["status"] != "ready" || !strings.HasPrefix(d["server_version"].(string), "1") ||
				d["default"] != (len(list) == 0) {
				t.Errorf("got %v, want it ready, with a version, and the first the default", d)
			}
			list = append(list, d["name"].(string))
		}
		return list
	}
	if got := compactJSON(names(root)); got != `["knowledge","sales","staff"]` {
		t.Errorf("got the databases %s", got)
	}
	if text := root.ok(t, "GET", "/databases", nil).text; strings.Contains(string(text), "host") {
		t.Errorf("the list shows an address: %s", text)
	}

	c := root.newUser(t, map[string]any{"role": "developer", "databases": []string{"staff", "sales"}})
	if got := compactJSON(names(c)); got != `["sales","staff"]` {
		t.Errorf("got the databases %s, want those of the key in the order of the service", got)
	}
	id := c.create(t, nil)
	a := c.run(t, id, `said = [db_query("SELECT DISTINCT seller FROM orders")[0]["seller"]]
for ask in [lambda: db_query("SELECT 1", database="knowledge"), lambda: db_tables("knowledge"),
        lambda: db_query("SELECT 1", database="nothing")]:
    try:
        said.append(ask())
    except DatabaseError as e:
        said.append([e.reason, str(e)])
said`)
	text := compactJSON(a.get("result"))
	if strings.Count(text, "unknown-database") != 3 || !strings.HasPrefix(text, `["sales",`) ||
		strings.Count(text, "the databases are sales, staff") != 3 || a.get("exception") != nil {
		t.Errorf("got %s %v, want the key's databases only", text, a.get("exception"))
	}
	wantProblem(t, c.do(t, "GET", "/database/schema?database=knowledge", nil), 422, "query-refused",
		"the databases are sales, staff")
	a = c.do(t, "POST", "/database/query", map[string]any{"query": "SELECT 1", "database": "knowledge"})
	if a.status != 422 ||
		strings.Contains(strings.ReplaceAll(string(a.text), `database \"knowledge\" that`, ""), "knowledge") {
		t.Errorf("got %s", a.text)
	}

	// A key that it creates may use the same or fewer.
	for _, list := range [][]string{{"knowledge"}, {"sales", "knowledge"}, {"hr"}, {}} {
		a := c.do(t, "POST", "/keys", map[string]any{"name": "n", "databases": list})
		wantProblem(t, a, http.StatusUnprocessableEntity, "invalid-input", "databases")
		if len(list) > 0 {
			wantProblem(t, a, http.StatusUnprocessableEntity, "invalid-input", "sales, staff")
		}
	}
	child, _ := c.newKey(t, map[string]any{"name": "n"})
	if got := compactJSON(names(child)); got != `["sales","staff"]` {
		t.Errorf("a key without a list: got %s, want those of the key that created it", got)
	}
	narrow, narrowID := c.newKey(t, map[string]any{"name": "n", "databases": []string{"staff"}})
	if got := compactJSON(names(narrow)); got != `["staff"]` {
		t.Errorf("got %s, want [staff]", got)
	}
	if got := compactJSON(c.keyOf(t, narrowID)["databases"]); got != `["staff"]` {
		t.Errorf("the list of keys: got %s, want [staff]", got)
	}
	// A service that has none of a key's databases any more says so, and names no other.
	narrow.server = serveDatabases(t).server
	a = narrow.do(t, "POST", "/database/query", map[string]any{"query": "SELECT 1"})
	wantProblem(t, a, 422, "query-refused", "this key may use no database", "admin")
	if got := names(narrow); len(got) != 0 || strings.Contains(string(a.text), "knowledge") {
		t.Errorf("got %v and %s, want no database", got, a.text)
	}
}

// A key cannot use the databases of another key of its user by way of a debug session that this one began.
func TestDebugSessionsKeepTheDatabasesOfTheirKey(t *testing.T) {
	t.Parallel()
	sales, staff, _ := salesAndStaff(t)
	root := serveDatabases(t, sales, staff)
	all := root.newUser(t, map[string]any{"role": "developer"})
	both, _ := all.newKey(t, map[string]any{"name": "n", "role": "developer", "databases": []string{"sales", "staff"}})
	narrow, _ := all.newKey(t, map[string]any{"name": "n", "role": "developer", "databases": []string{"staff"}})
	for name, c := range map[string]struct {
		began       client
		may, mayNot []client
	}{
		"all":  {all, []client{all, root}, []client{both, narrow}},
		"both": {both, []client{all, both, root}, []client{narrow}},
		"one":  {narrow, []client{all, both, narrow}, nil},
	} {
		id := c.began.create(t, nil)
		a := c.began.ok(t, "POST", "/sandbox/"+id+"/debug/sessions",
			map[string]any{"code": "x = 1\ny = 2", "stop_on_entry": true})
		path := fmt.Sprint("/debug/sessions/", a.get("session_id"))
		sold := map[string]any{"expression": `len(db_query("SELECT 1", database="staff"))`, "context": "repl"}
		for _, c := range c.mayNot {
			for method, path := range map[string]string{"GET": path, "DELETE": path, "POST": path + "/evaluate"} {
				a := c.do(t, method, path, sold)
				if method != "POST" {
					a = c.do(t, method, path, nil)
				}
				wantProblem(t, a, http.StatusForbidden, "forbidden", "databases that your key may not use")
			}
		}
		for i, c := range c.may {
			if a := c.do(t, "POST", path+"/drive", map[string]any{}); a.status != http.StatusOK {
				t.Errorf("%s, client %d: got HTTP %d %s, want it to drive", name, i, a.status, a.text)
			}
			if got := c.ok(t, "POST", path+"/evaluate", sold).get("result"); got != "1" {
				t.Errorf("%s, client %d: got %v, want 1", name, i, got)
			}
		}
		c.began.ok(t, "DELETE", path, nil)
	}
}

// A database that does not answer, from the beginning or later, touches no other. It is used as soon as it answers and
// its login has passed the audit.
func TestDatabaseThatIsDownTouchesNoOther(t *testing.T) {
	t.Parallel()
	sales, staff, _ := salesAndStaff(t)
	link, linked := newLink(t, embedded.RoleReader, strings.TrimPrefix(pathOf(t, sales.URL), "/"))
	outcomes := make(chan error, 100)
	sales.URL, sales.Audited = linked, func(err error) { outcomes <- err }
	root := serveDatabases(t, sales, staff)
	c := root.newUser(t, nil)
	id := c.create(t, nil)
	query := func(database string) answer {
		return c.do(t, "POST", "/database/query", map[string]any{"query": "SELECT 1 AS n", "database": database})
	}
	wantDown := func() {
		t.Helper()
		wantProblem(t, query("sales"), http.StatusServiceUnavailable, "unavailable", "sales", "does not answer")
		for _, name := range []string{"", "knowledge", "staff"} {
			if a := query(name); a.status != http.StatusOK {
				t.Errorf("%s: got %s", name, a.text)
			}
		}
		a := c.run(t, id, `said = [db_query("SELECT 1 AS n", database="staff")[0]["n"]]
try:
    db_query("SELECT 1", database="sales")
except DatabaseError as e:
    said += [e.reason, "sales" in str(e)]
said`)
		if got := compactJSON(a.get("result")); got != `[1,"unavailable",true]` {
			t.Errorf("got %s %v", got, a.get("exception"))
		}
		queries, _ := a.get("queries").([]any)
		if len(queries) != 2 || queries[1].(map[string]any)["reason"] != "unavailable" {
			t.Errorf("got the statements %v, want the second one failed because of unavailable", queries)
		}
		if a := root.ok(t, "GET", "/readyz", nil); a.get("unavailable_databases") != 1.0 {
			t.Errorf("got %s, want one database that does not answer", a.text)
		}
		for _, d := range c.ok(t, "GET", "/databases", nil).get("databases").([]any) {
			d := d.(map[string]any)
			want := map[bool]string{true: "unavailable", false: "ready"}[d["name"] == "sales"]
			if d["status"] != want {
				t.Errorf("got %v, want it %s", d, want)
			}
		}
	}
	wantUp := func() {
		t.Helper()
		eventually(t, "the database to be used again", func() bool { return query("sales").status == http.StatusOK })
		if a := root.ok(t, "GET", "/readyz", nil); a.get("unavailable_databases") != 0.0 {
			t.Errorf("got %s, want every database", a.text)
		}
	}
	wantDown()
	if err := <-outcomes; sandbox.FaultOf(err) != sandbox.FaultUnavailable {
		t.Errorf("got the outcome %v, want that it does not answer", err)
	}
	link.mend(t)
	wantUp()
	if err := <-outcomes; err != nil {
		t.Errorf("got the outcome %v, want none", err)
	}
	link.cut()
	wantDown()
	link.mend(t)
	wantUp()
}

func pathOf(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Path
}

// A database whose login can do more than read is not used, even if it answers only after the start.
func TestPowerfulLoginOfANamedDatabaseIsNotUsed(t *testing.T) {
	t.Parallel()
	name := newDatabase(t, "sales")
	link, linked := newLink(t, embedded.RoleOwner, name)
	outcomes := make(chan error, 100)
	root := serveDatabases(t, dbaccess.Config{
		Name: "sales", URL: linked, NeedsAudit: true, Audited: func(err error) { outcomes <- err },
	})
	query := func() answer {
		body := map[string]any{"query": "SELECT 1 FROM orders", "database": "sales"}
		return root.do(t, "POST", "/database/query", body)
	}
	wantProblem(t, query(), http.StatusServiceUnavailable, "unavailable", "sales", "does not answer")
	<-outcomes
	link.mend(t)
	var refused answer
	eventually(t, "the login to be audited", func() bool {
		refused = query()
		return strings.Contains(string(refused.text), "may do more than read")
	})
	wantProblem(t, refused, http.StatusServiceUnavailable, "unavailable", "sales", "log")
	if err := <-outcomes; err == nil || !strings.Contains(err.Error(), "owns or may write") {
		t.Errorf("the operator gets %v, want why the login is refused", err)
	}
	for _, path := range []string{"/database/schema?database=sales"} {
		wantProblem(t, root.do(t, "GET", path, nil), http.StatusServiceUnavailable, "unavailable", "may do more")
	}
	execAs(t, embedded.RoleAdmin, name, "ALTER TABLE orders OWNER TO "+embedded.RoleAdmin,
		"ALTER SCHEMA public OWNER TO "+embedded.RoleAdmin, "REVOKE ALL ON orders FROM "+embedded.RoleOwner,
		"GRANT SELECT ON orders TO "+embedded.RoleOwner, "GRANT USAGE ON SCHEMA public TO "+embedded.RoleOwner)
	eventually(t, "the login that can only read to be used", func() bool { return query().status == http.StatusOK })
}

// A statement that fills one database's connections leaves those of the others.
func TestDatabasesHaveTheirOwnConnections(t *testing.T) {
	t.Parallel()
	sales, staff, names := salesAndStaff(t)
	sales.MaxConns, sales.PerUser = 2, 1
	c := serveDatabases(t, sales, staff).newUser(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	defer ended.Wait()
	defer cancel()
	for range 2 {
		ended.Go(func() {
			c.doContext(ctx, "/database/query",
				`{"database":"sales","query":"SELECT count(*) FROM generate_series(1, 10000000000)"}`)
		})
	}
	observer, err := dbtest.Connect(t.Context(), testPostgres.URL(embedded.RoleAdmin, "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer observer.Close(context.Background())
	eventually(t, "a statement to use the user's only connection", func() bool {
		var n int
		if err := observer.QueryRow(t.Context(), `SELECT count(*)::int FROM pg_stat_activity
			WHERE datname = $1 AND state = 'active'`, names[0]).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n == 1
	})
	for _, name := range []string{"staff", "knowledge"} {
		c.ok(t, "POST", "/database/query", map[string]any{"query": "SELECT 1", "database": name})
	}
}

// doContext sends a request that ends with ctx.
func (c client) doContext(ctx context.Context, path, body string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.server+path, strings.NewReader(body))
	if err != nil {
		return
	}
	req.Header.Set("Authorization", "Bearer "+c.secret)
	req.Header.Set("Content-Type", "application/json")
	if resp, err := http.DefaultClient.Do(req); err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
}

// A captured write says which database it changes, and changes no other.
func TestPendingWriteChangesItsDatabase(t *testing.T) {
	t.Parallel()
	sales, staff, names := salesAndStaff(t)
	staff.WriterURL = testPostgres.URL(embedded.RoleWriter, names[1])
	root := serveDatabases(t, sales, staff)
	c := root.newUser(t, nil)
	id := c.create(t, map[string]any{"write_policy": "capture"})
	c.run(t, id, `db_query("UPDATE orders SET seller = :s WHERE id = 1", {"s": "new"}, database="staff")`)
	write := newestPendingWrite(t, root, c, id)
	if write["database"] != "staff" {
		t.Fatalf("got the pending write %v, want one of staff", write)
	}
	path := "/pending-writes/" + write["id"].(string)
	elsewhere := root.newUser(t, map[string]any{"role": "admin", "databases": []string{"sales"}})
	for _, action := range []string{"/apply", "/sample"} {
		a := elsewhere.do(t, "POST", path+action, map[string]any{})
		wantProblem(t, a, http.StatusUnprocessableEntity, "query-refused", "unknown-database", "sales")
	}
	a := root.ok(t, "POST", path+"/sample", map[string]any{})
	if !strings.Contains(string(a.text), `"seller":"staff"`) {
		t.Errorf("the sample: got %s, want the row of staff", a.text)
	}
	root.ok(t, "POST", path+"/apply", map[string]any{})
	a = c.run(t, id, `first = "SELECT seller FROM orders WHERE id = 1"
[db_query(first, database=name)[0]["seller"] for name in ["sales", "staff"]]`)
	if got := compactJSON(a.get("result")); got != `["sales","new"]` {
		t.Errorf("got the sellers %s, want only that of staff changed", got)
	}
}

// The tools for models name the databases that the key may use, and take the argument database.
func TestToolsNameTheDatabase(t *testing.T) {
	t.Parallel()
	sales, staff, _ := salesAndStaff(t)
	root := serveDatabases(t, sales, staff)
	c := root.newUser(t, map[string]any{"databases": []string{"sales", "staff"}})
	call := func(method string, params map[string]any) string {
		t.Helper()
		a := c.do(t, "POST", "/mcp", map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params},
			"Accept", "application/json, text/event-stream")
		if a.status != http.StatusOK {
			t.Fatalf("%s %v: got %s", method, params, a.text)
		}
		return string(a.text)
	}
	tool := func(name string, arguments map[string]any) string {
		t.Helper()
		return call("tools/call", map[string]any{"name": name, "arguments": arguments})
	}
	const sellers = "SELECT DISTINCT seller FROM orders"
	for _, x := range []struct {
		name      string
		arguments map[string]any
		want      []string
	}{
		{"describe_database", map[string]any{}, []string{"databases: sales, staff; this is sales", "orders"}},
		{"describe_database", map[string]any{"database": "staff"}, []string{"this is staff", "orders"}},
		{"describe_database", map[string]any{"table": "orders"}, []string{"email text, masked"}},
		{"describe_database", map[string]any{"database": "knowledge"}, []string{"the databases are sales, staff"}},
		{"query_database", map[string]any{"sql": sellers}, []string{`[\"sales\"]`}},
		{"query_database", map[string]any{"sql": sellers, "database": "staff"}, []string{`[\"staff\"]`}},
		{"query_database", map[string]any{"sql": sellers, "database": "knowledge"},
			[]string{"no database", "the databases are sales, staff", `"isError":true`}},
		{"run_python", map[string]any{"code": `db_query("` + sellers + `", database="staff")`}, []string{"staff"}},
	} {
		text := tool(x.name, x.arguments)
		for _, want := range x.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s %v: got %s, want %q", x.name, x.arguments, text, want)
			}
		}
	}
	for uri, masked := range map[string]bool{
		"glasshouse://schema/orders": true, "glasshouse://schema/orders?database=staff": false,
	} {
		text := call("resources/read", map[string]any{"uri": uri})
		if !strings.Contains(text, "ordinal_position") || strings.Contains(text, `\"masked\":true`) != masked {
			t.Errorf("%s: got %s, want the columns, masked: %t", uri, text, masked)
		}
	}
}
