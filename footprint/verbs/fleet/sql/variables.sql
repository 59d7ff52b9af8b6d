-- Which variables cost most?
-- {symbol} of {owner} costs most: {private_bytes} in {place_count} places.
SELECT sum(private_bytes) AS private_bytes,
       avg(private_bytes)::BIGINT AS mean_bytes,
       max(mapped_bytes) AS size_bytes,
       count(*) AS place_count,
       coalesce(any_value(name), symbol) AS symbol,
       owner
FROM current_rows
WHERE symbol IS NOT NULL AND kind <> 'heap' AND private_bytes > 0
GROUP BY owner, current_rows.symbol
ORDER BY private_bytes DESC, symbol, owner
LIMIT 10000;
