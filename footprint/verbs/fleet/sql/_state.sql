-- The last day of each host with processes, until getvariable('day') or else the last one of all. The fleet has the hosts
-- that were scanned in the seven days until then.
SET VARIABLE day = coalesce(getvariable('day')::DATE, (SELECT max(day) FROM inputs WHERE process_count > 0));
CREATE TABLE host_days AS
SELECT host, max(day) AS day FROM inputs WHERE process_count > 0 AND day <= getvariable('day') GROUP BY host;
SET VARIABLE first_day = coalesce((SELECT min(day) FROM host_days WHERE day > getvariable('day') - 7), getvariable('day'));

-- Of each host its last day, of each process of that day its last moment. getvariable('program') is a pattern of
-- programs, or null. Where the process ID is not known, the rows of an input at its last moment count.
CREATE TABLE current_processes AS
WITH latest AS (
    SELECT host, day, moment, audit, pid, program, build_id, process_count, private_bytes, kernel_bytes,
           per_process_bytes
    FROM processes SEMI JOIN host_days USING (host, day)
    WHERE day BETWEEN getvariable('first_day') AND getvariable('day')
    QUALIFY moment = max(moment) OVER (PARTITION BY host, pid, CASE WHEN pid IS NULL THEN input ELSE program END)
)
SELECT * FROM latest
WHERE getvariable('program') IS NULL OR program GLOB getvariable('program');

-- What is known of each file: datasets that are joined have some files several times.
CREATE VIEW known_files AS
SELECT file, any_value(package) AS package, any_value(package_version) AS package_version FROM files GROUP BY file;

-- The ledgers of these processes. Rows of the kernel are in no other sum.
CREATE VIEW current_rows AS
SELECT * FROM "rows" SEMI JOIN current_processes USING (audit)
WHERE day BETWEEN getvariable('first_day') AND getvariable('day');

-- What these processes hold of each owner. `process_count` is that of the process.
CREATE VIEW current_owners AS
SELECT owners.*, process_count
FROM owners JOIN (SELECT audit, process_count FROM current_processes) USING (audit)
WHERE day BETWEEN getvariable('first_day') AND getvariable('day');

-- The libraries of these processes. `process_count` is that of the process.
CREATE VIEW current_libraries AS
SELECT libraries.*, process_count
FROM libraries JOIN (SELECT audit, process_count FROM current_processes) USING (audit)
WHERE is_process AND path <> libraries.program AND day BETWEEN getvariable('first_day') AND getvariable('day');

-- The findings about these processes, one row a process. That of a program holds for each of its processes which has
-- no finding of the same rule itself, and does not run another build. `process_count` is that of the process.
CREATE VIEW current_findings AS
WITH own AS MATERIALIZED (
    SELECT findings.*, process_count FROM findings JOIN current_processes USING (audit)
    WHERE is_process AND findings.day BETWEEN getvariable('first_day') AND getvariable('day')
),
latest_programs AS (
    SELECT arg_max(audit, moment) AS audit, arg_max(file, moment) AS file FROM programs WHERE day <= getvariable('day') GROUP BY host, path
),
of_programs AS (
    SELECT found.* REPLACE (processes.audit AS audit, found.saving_bytes * processes.process_count AS saving_bytes),
           processes.process_count
    FROM findings AS found JOIN latest_programs USING (audit)
    JOIN current_processes AS processes ON found.host = processes.host AND found.program = processes.program
    WHERE NOT found.is_process AND coalesce(processes.build_id, latest_programs.file) = latest_programs.file
)
SELECT * FROM own
UNION ALL
SELECT * FROM of_programs ANTI JOIN own USING (audit, rule);

-- What each process saves with the remedies of one rule and subject, without those that sums do not count.
CREATE VIEW current_savings AS
SELECT audit, host, program, rule, subject, sum(saving_bytes)::BIGINT AS saving_bytes,
       any_value(process_count) AS process_count,
       arg_min(confidence, list_position(['medium', 'high', 'proof'], confidence)) AS confidence
FROM current_findings WHERE is_counted AND saving_bytes > 0
GROUP BY audit, host, program, rule, subject;

-- The same for the fleet: what it saves with the remedies of one rule and subject.
CREATE VIEW fleet_savings AS
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
GROUP BY rule, subject;

-- The last that is known of each host.
CREATE VIEW current_hosts AS
SELECT host, arg_max(memory_bytes, moment) AS memory_bytes, arg_max(available_bytes, moment) AS available_bytes
FROM hosts WHERE day <= getvariable('day') GROUP BY host;
