-- What does each library cost the programs at their start, in all versions of it?
-- {library} costs most: {least_bytes} with one process of each of {program_count} programs.
SELECT sum(startup_min_bytes) AS least_bytes,
       sum(startup_max_bytes) AS most_bytes,
       max(retained_bytes) AS retained_bytes,
       count(DISTINCT libraries.program) AS program_count,
       count(DISTINCT build_id) AS build_count,
       name AS library
FROM libraries SEMI JOIN current_programs USING (audit)
WHERE path <> libraries.program
GROUP BY name
ORDER BY least_bytes DESC NULLS LAST, library;
