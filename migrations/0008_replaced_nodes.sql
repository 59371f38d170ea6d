-- A service no longer holds an advisory lock on the history database while it runs. The node with the highest epoch has
-- the database.

-- Fails unless the node has the database with this epoch. Each transaction that stores what a node ran begins with it,
-- so a service that another one has replaced stores no more executions. The lock makes the other one wait for the end
-- of the transaction. It does not conflict with the node's signs of life.
CREATE FUNCTION require_node(node text, node_epoch bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM FROM nodes WHERE id = node AND epoch = node_epoch AND NOT EXISTS (
    SELECT FROM nodes WHERE epoch > node_epoch) FOR KEY SHARE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'another service has replaced the node %', node USING ERRCODE = 'GH001';
  END IF;
END $$;
