-- Which unused libraries cost the fleet most?
-- Nothing uses {subject}: the fleet saves {saving_bytes} in {process_count} processes on {host_count} hosts without it, such as {program}.
SELECT * FROM fleet_savings
WHERE rule IN ('unused-library', 'stub-library')
ORDER BY saving_bytes DESC, subject, rule;
