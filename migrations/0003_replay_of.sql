-- The original of an execution that is a replay, for lists. '' for other executions, and for replays that have not ended.
ALTER TABLE executions ADD replay_of text NOT NULL DEFAULT '';
