-- What does a process of each program cost at its start?
-- {program} costs most at its start: {least_bytes}, and {most_bytes} once it writes all that it can.
SELECT max(least_bytes) AS least_bytes,
       max(most_bytes) AS most_bytes,
       max(unused_bytes) AS unused_bytes,
       max(object_count) AS object_count,
       count(DISTINCT host) AS host_count,
       program
FROM current_programs
GROUP BY program
ORDER BY least_bytes DESC, program;
