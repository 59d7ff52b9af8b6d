-- Which unused libraries cost the fleet most?
-- Nothing uses {subject}: the fleet saves {saving_bytes} in {process_count} processes on {host_count} hosts without it, such as {program}.
SELECT sum(saving_bytes)::BIGINT AS saving_bytes,
       max(saving_bytes // process_count) AS each_bytes,
       sum(process_count)::BIGINT AS process_count,
       count(DISTINCT host) AS host_count,
       count(DISTINCT program) AS program_count,
       arg_min(confidence, list_position(['medium', 'high', 'proof'], confidence)) AS confidence,
       min(program) AS program,
       subject
FROM current_savings
WHERE rule IN ('unused-library', 'stub-library')
GROUP BY subject
ORDER BY saving_bytes DESC, subject;
