-- The weight of a key's user beside other users; 0 stands for 1.
ALTER TABLE keys ADD COLUMN weight integer NOT NULL DEFAULT 0;
