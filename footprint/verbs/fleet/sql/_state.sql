-- The fleet on getvariable('day'): of each host its last day, of each process of that day its last moment.
-- getvariable('first_day') is the first of these days; getvariable('program') is a pattern of programs, or null.
CREATE TABLE current_processes AS
WITH recent AS MATERIALIZED (
    SELECT host, day, moment, audit, pid, program, build_id, process_count, private_bytes, kernel_bytes,
           per_process_bytes
    FROM processes
    WHERE day BETWEEN getvariable('first_day') AND getvariable('day')
      AND (getvariable('program') IS NULL OR program GLOB getvariable('program'))
),
last_days AS (SELECT host, max(day) AS day FROM recent GROUP BY host),
latest AS (
    SELECT arg_max(audit, moment) AS audit
    FROM recent SEMI JOIN last_days USING (host, day)
    GROUP BY host, coalesce(pid, audit), program
)
SELECT * FROM recent SEMI JOIN latest USING (audit);

-- The ledgers of these processes. Rows of the kernel are in no other sum.
CREATE VIEW current_rows AS
SELECT * FROM "rows" SEMI JOIN current_processes USING (audit)
WHERE day BETWEEN getvariable('first_day') AND getvariable('day');

-- The findings about these processes, one row a process. That of a program holds for each of its processes which has
-- no finding of the same rule itself.
CREATE VIEW current_findings AS
WITH own AS MATERIALIZED (
    SELECT * FROM findings SEMI JOIN current_processes USING (audit)
    WHERE is_process AND day BETWEEN getvariable('first_day') AND getvariable('day')
),
latest_programs AS (
    SELECT arg_max(audit, moment) AS audit FROM programs WHERE day <= getvariable('day') GROUP BY host, path
),
of_programs AS (
    SELECT found.* REPLACE (processes.audit AS audit)
    FROM findings AS found SEMI JOIN latest_programs USING (audit)
    JOIN current_processes AS processes ON found.host = processes.host AND found.program = processes.program
    WHERE NOT found.is_process
)
SELECT * FROM own
UNION ALL
SELECT * FROM of_programs ANTI JOIN own USING (audit, rule);

-- The last that is known of each host.
CREATE VIEW current_hosts AS
SELECT host, arg_max(memory_bytes, moment) AS memory_bytes, arg_max(available_bytes, moment) AS available_bytes
FROM hosts WHERE day <= getvariable('day') GROUP BY host;
