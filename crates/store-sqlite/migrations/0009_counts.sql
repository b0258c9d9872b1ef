-- The writer keeps the numbers of invocations itself and writes them once for a group of jobs. With a trigger on it, SQLite
-- builds a temporary table for every update of a run's row.
DROP TRIGGER invocations_counted_in;
DROP TRIGGER invocations_counted_again;
DROP TRIGGER invocations_counted_out;
