-- Which libraries cost the programs most at their start?
-- {library} costs most: {start_us} us of processor time, estimated, if each of {program_count} programs starts once.
SELECT sum(start_us) AS start_us,
       max(start_us) AS each_us,
       count(DISTINCT libraries.program) AS program_count,
       name AS library
FROM libraries SEMI JOIN current_programs USING (audit)
WHERE path <> libraries.program AND start_us IS NOT NULL
GROUP BY name
ORDER BY start_us DESC, library;
