-- A case is a line "### outcome" and the statement below it, up to the next.
### syntax-error
SELEC 1
### syntax-error
SELECT 'unfinished
### syntax-error
SELECT FROM WHERE
### syntax-error
-- nothing
### syntax-error
;
### syntax-error
SELECT * FRM users
### syntax-error
SELECT (1
### syntax-error
SELECT 1)
### syntax-error
SELECT "unfinished
### syntax-error
SELECT $a$ unfinished
### syntax-error
SELECT /* unfinished
### syntax-error
SELECT $1
### syntax-error
SELECT 1 +
### syntax-error
SELECT * FROM users WHERE
### syntax-error
SELEC pg_sleep(1)
### syntax-error
WITH x AS SELECT 1
### syntax-error
SELECT 'a' 'b'
### syntax-error
SELECT E'\'
