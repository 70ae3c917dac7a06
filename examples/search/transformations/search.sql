-- Figure 1 of 004: pages are crawled, users click, and every page is to carry the click score of its
-- site. Each rectangle of the figure is a table or a view. A new page is wanted in the index at once.
-- Scores move slowly: those of pages that are there already may be a week old.

CREATE STREAMING TABLE pages COMMENT 'What the crawler found'
  TBLPROPERTIES ('springhouse.period' = '2 hours')
  AS SELECT concat('site', offset % 40, '.com/', offset) AS url, repeat(CAST(offset AS STRING), 20) AS content
  FROM STREAM sample(rate => '0.05');

CREATE STREAMING TABLE clicks COMMENT 'Who clicked on a result of which site'
  TBLPROPERTIES ('springhouse.period' = '2 hours')
  AS SELECT (offset * 7919) % 20011 AS user, concat('site', pmod(hash(offset), 40), '.com') AS site
  FROM STREAM sample(rate => '0.1');

-- The left-hand pathway.

CREATE MATERIALIZED VIEW digests COMMENT 'What tells a page from others with other content'
  AS SELECT url, split_part(url, '/', 1) AS site, sha1(content) AS digest FROM pages;

-- The right-hand pathway. The paper bounds the score alone; what is on the way is asked for by it.

CREATE MATERIALIZED VIEW visitors COMMENT 'Each user once for each site'
  TBLPROPERTIES ('springhouse.staleness' = '1 day')
  AS SELECT DISTINCT user, site FROM clicks;

CREATE MATERIALIZED VIEW popularity COMMENT 'How many users clicked on a site'
  TBLPROPERTIES ('springhouse.staleness' = '1 day')
  AS SELECT site, count(*) AS users FROM visitors GROUP BY site;

CREATE MATERIALIZED VIEW click_score COMMENT 'How good a site is'
  TBLPROPERTIES ('springhouse.staleness' = '1 day')
  AS SELECT site, round(ln(1 + users), 6) AS score FROM popularity;

-- bound_staleness(output, 0, 0), bound_inconsistency(output, 1 week)

CREATE MATERIALIZED VIEW output COMMENT 'Pages with the scores of their sites'
  TBLPROPERTIES ('springhouse.staleness.digests' = '0 seconds', 'springhouse.staleness.click_score' = '1 week',
                 'springhouse.inconsistency' = '1 week')
  AS SELECT d.url, d.digest, s.score FROM digests d JOIN click_score s ON s.site = d.site;
