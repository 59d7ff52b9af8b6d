-- What would the fleet save with each remedy?
-- {subject} ({rule}): the fleet saves {saving_bytes} in {process_count} processes on {host_count} hosts without it, such as {program}.
SELECT sum(saving_bytes)::BIGINT AS saving_bytes,
       max(saving_bytes // process_count) AS each_bytes,
       sum(process_count)::BIGINT AS process_count,
       count(DISTINCT host) AS host_count,
       count(DISTINCT program) AS program_count,
       arg_min(confidence, list_position(['medium', 'high', 'proof'], confidence)) AS confidence,
       rule,
       min(program) AS program,
       subject
FROM current_savings
GROUP BY rule, subject
ORDER BY saving_bytes DESC, subject;
