-- Figure 7 of 004: which pages are to be fetched next? Three selections say so, from what was fetched
-- and how many links lead where. New pages are looked for every hour, pages that may have changed
-- every four hours, and pages that were not fetched for long once a day.

CREATE STREAMING TABLE fetches COMMENT 'What became of each attempt to fetch a page'
  TBLPROPERTIES ('springhouse.period' = '1 hour')
  AS SELECT concat('page', page) AS url, time AS fetched_at, code,
            if(code = 200, concat('page', page, ' of ', edition), NULL) AS content,
            if(code = 200, transform(sequence(1, 5), i -> concat('page',
               least(pmod(hash(page, edition, i), 8000), pmod(hash(page, edition, i, 1), 8000)))), NULL) AS links
  FROM (SELECT *, pmod(hash(offset), 1000 + offset div 20) AS page, if(pmod(hash(offset, 3), 20) = 0, 404, 200) AS code,
               offset div (1000 * (1 + pmod(hash(offset), 7))) AS edition
        FROM STREAM sample(rate => '0.02'));

CREATE MATERIALIZED VIEW successful COMMENT 'Fetches that brought a page'
  AS SELECT url, fetched_at FROM fetches WHERE code = 200;

CREATE MATERIALIZED VIEW digests COMMENT 'How the content of each page evolved'
  AS SELECT url, fetched_at, sha1(content) AS digest FROM fetches WHERE code = 200;

-- New links of a page take the place of those that it had.

CREATE MATERIALIZED VIEW links COMMENT 'Which page leads to which'
  TBLPROPERTIES ('springhouse.staleness' = '1 week')
  AS SELECT p.source, t.target
     FROM (SELECT url AS source, max_by(links, fetched_at) AS links FROM fetches WHERE code = 200 GROUP BY url) p
     LATERAL VIEW explode(p.links) t AS target;

CREATE MATERIALIZED VIEW indegree COMMENT 'How many pages lead to a page'
  TBLPROPERTIES ('springhouse.staleness' = '1 week')
  AS SELECT target AS url, count(*) AS indegree FROM links GROUP BY target;

-- The selections are batch jobs. They are asked for by the queue alone.

CREATE MATERIALIZED VIEW top_unfetched COMMENT 'Pages that many lead to and that were never fetched'
  TBLPROPERTIES ('springhouse.staleness' = '1 week', 'springhouse.inconsistency' = '1 week', 'springhouse.refresh' = 'full')
  AS SELECT i.url, i.indegree FROM indegree i LEFT ANTI JOIN successful s ON s.url = i.url
     ORDER BY i.indegree DESC, i.url LIMIT 400;

CREATE MATERIALIZED VIEW periodic_recrawl COMMENT 'Pages that were not fetched for long; the more lead there, the sooner'
  TBLPROPERTIES ('springhouse.staleness' = '1 week', 'springhouse.inconsistency' = '1 week', 'springhouse.refresh' = 'full')
  AS SELECT s.url FROM (SELECT url, max(fetched_at) AS last FROM successful GROUP BY url) s
     JOIN indegree i ON i.url = s.url
     WHERE unix_seconds(s.last) < (SELECT max(unix_seconds(fetched_at)) FROM successful) - 3000000 / (1 + i.indegree);

CREATE MATERIALIZED VIEW adaptive_recrawl COMMENT 'Pages whose content changes often, and that many lead to'
  TBLPROPERTIES ('springhouse.staleness' = '1 week', 'springhouse.inconsistency' = '1 week', 'springhouse.refresh' = 'full')
  AS SELECT d.url, round(d.changes * ln(1 + i.indegree), 6) AS gain
     FROM (SELECT url, (count(DISTINCT digest) - 1) / count(*) AS changes FROM digests GROUP BY url) d
     JOIN indegree i ON i.url = d.url
     ORDER BY gain DESC, d.url LIMIT 200;

-- bound_staleness(output, 0, 1 hour), bound_staleness(output, 2, 1 day),
-- bound_staleness(output, 4, 4 hours), bound_inconsistency(output, 1 week)

CREATE MATERIALIZED VIEW crawl_queue COMMENT 'What the fetching service is to fetch'
  TBLPROPERTIES ('springhouse.staleness.successful > top_unfetched' = '1 hour',
                 'springhouse.staleness.successful > periodic_recrawl' = '1 day',
                 'springhouse.staleness.digests > adaptive_recrawl' = '4 hours',
                 'springhouse.staleness' = '1 week', 'springhouse.inconsistency' = '1 week')
  AS SELECT url, 'never fetched' AS reason FROM top_unfetched
     UNION ALL SELECT url, 'not fetched for long' AS reason FROM periodic_recrawl
     UNION ALL SELECT url, 'likely to have changed' AS reason FROM adaptive_recrawl;
