-- What do the programs and libraries of each package cost at their start?
-- {package} costs most: {least_bytes} with one process of each of {program_count} programs.
WITH objects AS (
    SELECT path, build_id AS file, libraries.program, startup_min_bytes FROM libraries SEMI JOIN current_programs USING (audit)
)
SELECT sum(startup_min_bytes) AS least_bytes,
       count(DISTINCT program) AS program_count,
       count(DISTINCT objects.path) AS file_count,
       list_sort(list(DISTINCT package_version) FILTER (package_version IS NOT NULL)) AS versions,
       coalesce(package, '[no package]') AS package
FROM objects LEFT JOIN known_files USING (file)
GROUP BY package
ORDER BY least_bytes DESC NULLS LAST, package;
