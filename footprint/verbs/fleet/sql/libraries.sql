-- What does each library cost, in all versions of it?
-- {library} costs most: {private_bytes} in {process_count} processes on {host_count} hosts.
WITH held AS (
    SELECT host, audit, process_count, name AS library,
           sum(private_bytes) AS private_bytes, max(retained_bytes) AS retained_bytes
    FROM current_libraries GROUP BY ALL
),
builds AS (SELECT name AS library, count(DISTINCT build_id) AS build_count FROM current_libraries GROUP BY ALL)
SELECT sum(private_bytes) AS private_bytes,
       (sum(private_bytes) / sum(process_count))::BIGINT AS mean_bytes,
       max(retained_bytes // process_count) AS retained_bytes,
       sum(process_count) AS process_count,
       count(DISTINCT host) AS host_count,
       any_value(build_count) AS build_count,
       library
FROM held JOIN builds USING (library)
GROUP BY library
ORDER BY private_bytes DESC NULLS LAST, library;
