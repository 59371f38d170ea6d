-- Statements that ran only to explain a statement: its stages, the rows behind a cell, or a missing row.
ALTER TABLE executions ADD is_explanation boolean NOT NULL DEFAULT false;

-- Lists and sums of work leave these executions out, and count them. They are few beside the others.
CREATE INDEX executions_besides_work ON executions (created_at DESC, id DESC)
  WHERE kind = 'replay' OR is_explanation;
