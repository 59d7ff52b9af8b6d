-- What would the fleet save with each remedy?
-- {subject} ({rule}): the fleet saves {saving_bytes} in {process_count} processes on {host_count} hosts without it, such as {program}.
SELECT * FROM fleet_savings
ORDER BY saving_bytes DESC, subject, rule;
