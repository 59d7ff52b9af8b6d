-- The last day of each host with processes, until getvariable('day') or else the last one of all. The fleet has the hosts
-- that were scanned in the seven days until then.
CREATE TABLE process_inputs AS
SELECT DISTINCT host, day, part, row_count > 0 AND kind <> 'series' AS has_files FROM inputs WHERE process_count > 0;
SET VARIABLE day = coalesce(getvariable('day')::DATE, (SELECT max(day) FROM process_inputs));
CREATE TABLE host_days AS
SELECT host, max(day) AS day FROM process_inputs WHERE day <= getvariable('day') GROUP BY host;
SET VARIABLE first_day = coalesce((SELECT min(day) FROM host_days WHERE day > getvariable('day') - 7), getvariable('day'));

-- Of each host its last day, of each process of that day its last moment. getvariable('program') is a pattern of
-- programs, or null. Where the process ID is not known, the rows of an input at its last moment count. `cost_bytes` is
-- the private memory alone where the rest is not known, as of texts.
CREATE TABLE current_processes AS
WITH latest AS (
    SELECT host, day, moment, audit, pid, program, build_id, process_count, private_bytes, kernel_bytes,
           per_process_bytes, coalesce(per_process_bytes, private_bytes) AS cost_bytes, is_searched
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

-- The last that is known of each program of each host, image or folder. getvariable('program') is a pattern of programs,
-- or null.
CREATE TABLE current_programs AS
SELECT host, path AS program, file, audit, moment, object_count, startup_min_bytes + start_bytes AS least_bytes,
       startup_max_bytes + start_bytes AS most_bytes, unused_bytes
FROM programs
WHERE (getvariable('day') IS NULL OR day <= getvariable('day'))
  AND (getvariable('program') IS NULL OR path GLOB getvariable('program'))
QUALIFY row_number() OVER (PARTITION BY host, path ORDER BY moment DESC, audit) = 1;

-- The findings of programs and files that were scanned, each once for all hosts. `file` is the build-id of the program, or
-- of the file that it is about alone; `subject_file` that of the library that it is about, where it is about one.
CREATE VIEW scanned_findings AS
WITH scans AS (SELECT DISTINCT audit, file AS program_file FROM programs),
subjects AS (
    SELECT audit, name AS subject, min(build_id) AS subject_file FROM libraries WHERE NOT is_process GROUP BY ALL
)
SELECT found.* REPLACE (coalesce(found.file, program_file) AS file), found.file IS NULL AS is_of_program, subject_file
FROM findings AS found LEFT JOIN scans USING (audit) LEFT JOIN subjects USING (audit, subject)
WHERE NOT is_process AND (found.file IS NOT NULL OR program_file IS NOT NULL)
QUALIFY found.file IS NULL OR found.audit = min(found.audit) OVER (PARTITION BY found.file);

-- The findings about these processes, one row a process. A process that was searched itself has its own. Else those of the
-- program hold, as it is on the host, or as another host or image has the same build-id with the same library; and those of
-- each file that it maps, by its build-id. `process_count` is that of the process.
CREATE VIEW current_findings AS
WITH scanned_once AS MATERIALIZED (SELECT * FROM scanned_findings),
own AS MATERIALIZED (
    SELECT findings.*, process_count FROM findings JOIN current_processes USING (audit)
    WHERE is_process AND findings.day BETWEEN getvariable('first_day') AND getvariable('day')
),
here AS MATERIALIZED (
    SELECT processes.audit, scans.audit AS scan
    FROM current_processes AS processes JOIN current_programs AS scans USING (host, program)
    WHERE NOT is_searched AND coalesce(build_id, scans.file) = scans.file
),
elsewhere AS (
    SELECT * FROM scanned_once WHERE is_of_program
    QUALIFY row_number() OVER (PARTITION BY file, rule, kind, subject, object_path, subject_file ORDER BY day DESC, audit) = 1
),
mapped AS MATERIALIZED (
    SELECT DISTINCT audit, build_id AS file
    FROM libraries JOIN (SELECT audit FROM current_processes WHERE NOT is_searched) USING (audit)
    WHERE build_id IN (SELECT subject_file FROM elsewhere UNION ALL SELECT file FROM scanned_once WHERE NOT is_of_program)
      AND day BETWEEN getvariable('first_day') AND getvariable('day')
),
scanned AS (
    SELECT here.audit AS process, found.* EXCLUDE (is_of_program, subject_file)
    FROM scanned_once AS found JOIN here ON found.audit = here.scan WHERE is_of_program
    UNION ALL
    SELECT processes.audit, found.* EXCLUDE (is_of_program, subject_file)
    FROM elsewhere AS found JOIN current_processes AS processes ON found.file = processes.build_id
    LEFT JOIN mapped ON mapped.audit = processes.audit AND mapped.file = subject_file
    WHERE NOT is_searched AND processes.audit NOT IN (SELECT audit FROM here)
      AND (subject_file IS NULL OR mapped.file IS NOT NULL)
    UNION ALL
    SELECT mapped.audit, found.* EXCLUDE (is_of_program, subject_file)
    FROM scanned_once AS found JOIN mapped USING (file) WHERE NOT is_of_program
)
SELECT * FROM own
UNION ALL
SELECT scanned.* EXCLUDE (process)
       REPLACE (processes.audit AS audit, processes.host AS host, processes.program AS program,
                scanned.saving_bytes::HUGEINT * processes.process_count AS saving_bytes),
       processes.process_count
FROM scanned JOIN current_processes AS processes ON scanned.process = processes.audit;

-- The programs that run, by build, and whether their findings are known: a process of each build was searched itself, or
-- the program was scanned, there or with this build-id elsewhere.
CREATE VIEW program_coverage AS
SELECT host, program, build_id,
       bool_or(is_searched OR program_file IS NOT NULL OR here.file IS NOT NULL) AS is_known
FROM current_processes AS processes
LEFT JOIN (SELECT DISTINCT file AS program_file FROM programs) ON program_file = build_id
LEFT JOIN current_programs AS here USING (host, program)
GROUP BY ALL;

-- The weakest of the confidences that sums count.
CREATE MACRO weakest(confidence) AS arg_min(confidence, list_position(['medium', 'high', 'proof'], confidence));

-- What each process saves with the remedies of one rule and subject, without those that sums do not count.
CREATE VIEW current_savings AS
SELECT audit, host, program, rule, subject, sum(saving_bytes) AS saving_bytes,
       any_value(process_count) AS process_count,
       weakest(confidence) AS confidence
FROM current_findings WHERE is_counted AND saving_bytes > 0
GROUP BY audit, host, program, rule, subject;

-- The same for the fleet: what it saves with the remedies of one rule and subject.
CREATE VIEW fleet_savings AS
SELECT sum(saving_bytes) AS saving_bytes,
       max(saving_bytes // process_count) AS each_bytes,
       sum(process_count) AS process_count,
       count(DISTINCT host) AS host_count,
       count(DISTINCT program) AS program_count,
       weakest(confidence) AS confidence,
       rule,
       min(program) AS program,
       subject
FROM current_savings
GROUP BY rule, subject;

-- The last that is known of each host.
CREATE VIEW current_hosts AS
SELECT host, arg_max(memory_bytes, moment) AS memory_bytes, arg_max(available_bytes, moment) AS available_bytes
FROM hosts WHERE day <= getvariable('day') GROUP BY host;

-- What one process of each scanned program saves with the remedies of one rule and subject, for datasets without processes.
CREATE VIEW program_savings AS
WITH own AS (
    SELECT programs.host, programs.program, rule, subject, saving_bytes, confidence, is_counted
    FROM scanned_findings AS found JOIN current_programs AS programs
      ON CASE WHEN is_of_program THEN found.audit = programs.audit ELSE found.file = programs.file END
),
of_libraries AS (
    SELECT DISTINCT programs.host, programs.program, rule, subject, saving_bytes, confidence, is_counted
    FROM scanned_findings AS found
    JOIN libraries ON found.file = libraries.build_id AND libraries.path <> libraries.program
    JOIN current_programs AS programs ON programs.audit = libraries.audit
    WHERE NOT is_of_program
),
held AS (SELECT * FROM own UNION ALL SELECT * FROM of_libraries)
SELECT sum(saving_bytes) AS saving_bytes,
       max(saving_bytes) AS each_bytes,
       count(DISTINCT program) AS program_count,
       count(DISTINCT host) AS host_count,
       weakest(confidence) AS confidence,
       rule,
       min(program) AS program,
       subject
FROM held WHERE is_counted AND saving_bytes > 0
GROUP BY rule, subject;
