-- What do the programs and libraries of each package cost?
-- {package} costs most: {private_bytes} on {host_count} hosts.
WITH held AS (
    SELECT host, owner, sum(private_bytes) AS private_bytes
    FROM current_owners WHERE owner LIKE '/%' GROUP BY host, owner
),
builds AS (
    SELECT host, path AS owner, any_value(build_id) AS file
    FROM libraries SEMI JOIN current_processes USING (audit)
    WHERE is_process AND day BETWEEN getvariable('first_day') AND getvariable('day')
    GROUP BY host, path
)
SELECT sum(private_bytes) AS private_bytes,
       count(DISTINCT host) AS host_count,
       count(DISTINCT owner) AS file_count,
       list_sort(list(DISTINCT package_version) FILTER (package_version IS NOT NULL)) AS versions,
       coalesce(package, '[no package]') AS package
FROM held LEFT JOIN builds USING (host, owner) LEFT JOIN known_files USING (file)
GROUP BY package
ORDER BY private_bytes DESC NULLS LAST, package;
