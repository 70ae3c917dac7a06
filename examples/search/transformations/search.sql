-- The workflow of 004, section 1.1: pages are crawled, users click, and every page is to carry the
-- click score of its site. A new page is wanted in the index at once. Scores move slowly: those of
-- pages that are there already may be a week old.

CREATE STREAMING TABLE pages
  TBLPROPERTIES ('springhouse.period' = '2 hours')
  AS SELECT concat('site', offset % 40, '.com/', offset) AS url, concat('site', offset % 40, '.com') AS site,
            sha1(CAST(offset AS STRING)) AS digest
  FROM STREAM sample(rate => '0.05');

CREATE STREAMING TABLE clicks
  TBLPROPERTIES ('springhouse.period' = '2 hours')
  AS SELECT (offset * 7919) % 20011 AS user, concat('site', pmod(hash(offset), 40), '.com') AS site
  FROM STREAM sample(rate => '0.2');

CREATE MATERIALIZED VIEW click_score COMMENT 'Sites by how many users clicked on them'
  TBLPROPERTIES ('springhouse.staleness' = '1 day')
  AS SELECT site, round(ln(1 + count(DISTINCT user)), 6) AS score FROM clicks GROUP BY site;

CREATE MATERIALIZED VIEW output COMMENT 'Pages with the scores of their sites'
  TBLPROPERTIES ('springhouse.staleness.click_score' = '1 week', 'springhouse.inconsistency' = '1 week')
  AS SELECT p.url, p.digest, s.score FROM pages p JOIN click_score s ON s.site = p.site;
