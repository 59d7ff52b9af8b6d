-- What would N processes of each program cost at their start (-n)?
-- {count} of {program} cost {more_bytes} at their start.
SELECT max(least_bytes)::HUGEINT * getvariable('count') AS more_bytes,
       max(least_bytes) AS each_bytes,
       max(most_bytes)::HUGEINT * getvariable('count') AS most_bytes,
       getvariable('count') AS count,
       program
FROM current_programs
GROUP BY program
ORDER BY more_bytes DESC, program;
