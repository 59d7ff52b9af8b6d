-- Which copies of statics, and which tables of addresses, cost the fleet most?
-- {subject} ({rule}): the fleet saves {saving_bytes} in {process_count} processes on {host_count} hosts, such as {program}.
SELECT * FROM fleet_savings
WHERE rule IN ('duplicate-static', 'linked-twice', 'relocated-tables')
ORDER BY saving_bytes DESC, subject, rule;
